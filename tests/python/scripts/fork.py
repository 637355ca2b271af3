# SPDX-License-Identifier: Apache-2.0
"""Load before, inside and after a fork, and fork while another thread loads."""

import os
import sys
import threading

import kernels

import kernix


def load(value):
    """Load a tiny module."""
    return kernix.load_cpp_inline("forked", kernels.constant(value), auto_register=False)


def in_child(work):
    """Run `work` in a forked child and wait for it."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            work()
            sys.stdout.flush()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


first = load(1)
print("before", first.cache_hit)


def child():
    """Load what the parent has loaded, the same from the daemon, and something new."""
    if load(1) is first:
        print("child knows it")
    kernix.clear_cache("another")  # so that the daemon is asked
    print("child hit", load(1).cache_hit)
    print("child new", load(2).cache_hit)


in_child(child)
print("after hit", load(2).cache_hit)
print("after new", load(3).cache_hit)

results = []
thread = threading.Thread(target=lambda: results.append(load(4)))
thread.start()
forks = 0
while thread.is_alive():  # at every moment of the load
    in_child(lambda: load(1))
    forks += 1
thread.join()
print("fork during a load" if forks else "no fork fell into the load")
print("load survived the fork" if results and results[0].function_names == ["value"] else "load failed")
