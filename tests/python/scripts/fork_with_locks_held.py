# SPDX-License-Identifier: Apache-2.0
"""Fork while another thread holds the locks of the package; load in the child, and say how it ended."""

import contextlib
import os
import signal
import threading

import kernels

import kernix
from kernix.jax import targets
from kernix.loading import connection, console

LOCKS = (connection._lock, console._terminal_owner, targets._lock)
held, done = threading.Event(), threading.Event()


def hold():
    """Hold every lock until the parent is done."""
    with contextlib.ExitStack() as stack:
        for lock in LOCKS:
            stack.enter_context(lock)
        held.set()
        done.wait()


thread = threading.Thread(target=hold)
thread.start()
held.wait()
child = os.fork()
if child == 0:
    signal.alarm(60)  # ends one that waits for a thread of its parent
    kernix.load_cpp_inline("forked", kernels.constant(1), auto_register=False)
    os._exit(0 if all(lock.try_acquire() for lock in LOCKS) else 1)
status = os.waitpid(child, 0)[1]
print("child ended with", os.waitstatus_to_exitcode(status), "and the parent's locks are", end=" ")
print("held" if not any(lock.try_acquire() for lock in LOCKS) else "free")
done.set()
thread.join()
