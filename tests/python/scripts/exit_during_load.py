# SPDX-License-Identifier: Apache-2.0
"""End while daemon threads are in the middle of loads whose compilation does not end."""

import sys
import threading
import time

import kernels

# Python crashes if it ends while daemon threads import; `kernix.load_cpp_inline` would do so here at its first use.
from kernix import load_cpp_inline
from kernix.loading import connection

THREADS = 3
DEADLINE = 120  # seconds until all of them must be compiling

errors = []


def load(number, verbose):
    """Load an endless kernel, each a different one."""
    source = f"// {number}\n{kernels.ENDLESS}"
    try:
        load_cpp_inline("endless", source, extra_cflags=kernels.ENDLESS_FLAGS, auto_register=False, verbose=verbose)
    except Exception as error:
        errors.append(error)


def ask():
    """Ask the daemon all the time: short waits, each with the GIL taken again at its end."""
    while True:
        connection.client().info()


def jobs():
    """Return how many jobs the daemon has."""
    info = connection.client().info()  # starts the daemon
    return info.running_jobs + info.queued_jobs


while jobs() > 0:  # of a process before this one
    time.sleep(0.01)
for number in range(THREADS):
    threading.Thread(target=load, args=(number, number % 2 == 0), daemon=True).start()
threading.Thread(target=ask, daemon=True).start()
deadline = time.monotonic() + DEADLINE
while True:
    if errors or time.monotonic() > deadline:
        sys.exit(f"not {THREADS} loads at once: {errors}")
    if jobs() >= THREADS:
        break
print("going", flush=True)
if sys.argv[1] == "sys.exit":
    sys.exit(0)
