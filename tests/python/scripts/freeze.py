# SPDX-License-Identifier: Apache-2.0
"""Freeze this process, and load in other threads and in a forked child."""

import os
import sys
import threading

import kernels

import kernix


def load(value):
    """Load a tiny module, and print what became of it."""
    try:
        print(value, kernix.load_cpp_inline("frozen", kernels.constant(value), auto_register=False).origin)
    except kernix.KernelNotCachedError:
        print(value, "refused")


def load_in_thread(value):
    """Do so in another thread."""
    thread = threading.Thread(target=load, args=(value,))
    thread.start()
    thread.join()


load(1)
kernix.freeze()
load_in_thread(1)
load_in_thread(2)
sys.stdout.flush()
if os.fork() == 0:
    load(3)
    print("child", kernix.report().after_freeze)
    kernix.unfreeze()
    load(4)
    sys.stdout.flush()
    os._exit(0)
os.wait()
load(5)
print("parent", kernix.report().after_freeze)
