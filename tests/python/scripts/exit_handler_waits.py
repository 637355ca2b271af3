# SPDX-License-Identifier: Apache-2.0
"""At exit, wait for a thread of one's own that still wants something of kernix."""

import atexit
import threading

DEADLINE = 60  # seconds; a thread that is stuck makes the test fail, not hang

ending = threading.Event()


def ask():
    """Call kernix once the interpreter ends."""
    ending.wait()
    try:
        connection.client().info()
    except RuntimeError as error:
        print(error, flush=True)


thread = threading.Thread(target=ask, daemon=True)


@atexit.register
def wait():
    """Run after kernix' own function, which is registered when kernix is imported."""
    ending.set()
    thread.join(DEADLINE)
    print("stuck" if thread.is_alive() else "joined", flush=True)


from kernix.loading import connection  # noqa: E402

connection.client().info()
thread.start()
