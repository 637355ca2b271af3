# SPDX-License-Identifier: Apache-2.0
"""End while daemon threads are in the middle of loads whose compilation does not end."""

import sys
import threading
import time

import kernels

import kernix
from kernix.loading import connection

THREADS = 3
DEADLINE = 120  # seconds until all of them must be compiling

errors = []


def load(number, verbose):
    """Load an endless kernel, each a different one."""
    source = f"// {number}\n{kernels.ENDLESS}"
    try:
        kernix.load_cpp_inline(
            "endless", source, extra_cflags=kernels.ENDLESS_FLAGS, auto_register=False, verbose=verbose
        )
    except Exception as error:
        errors.append(error)


def ask():
    """Ask the daemon all the time: short waits, each with the GIL taken again at its end."""
    while True:
        connection.client().info()


connection.client().info()  # starts the daemon
for number in range(THREADS):
    threading.Thread(target=load, args=(number, number % 2 == 0), daemon=True).start()
threading.Thread(target=ask, daemon=True).start()
deadline = time.monotonic() + DEADLINE
while True:
    if errors or time.monotonic() > deadline:
        sys.exit(f"not {THREADS} loads at once: {errors}")
    info = connection.client().info(start=False)
    if info.running_jobs + info.queued_jobs >= THREADS:
        break
print("going", flush=True)
if sys.argv[1] == "sys.exit":
    sys.exit(0)
