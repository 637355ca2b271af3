# SPDX-License-Identifier: Apache-2.0
"""Load, and print what kernix.report() says, here and in a forked child."""

import contextlib
import os
import sys
import threading

import kernels

import kernix


def load(name, value):
    """Load a tiny module."""
    return kernix.load_cpp_inline(name, kernels.constant(value), auto_register=False)


def show(label):
    """Print the counts of this process."""
    print(label, sorted(kernix.report().counts.items()))


show("nothing")
load("report_a", 1)
load("report_a", 1)
kernix.clear_cache("no module of any test")  # so that the daemon is asked
load("report_a", 1)
with contextlib.suppress(kernix.KernelCompilationError):
    kernix.load_cpp_inline("report_b", "// @BE f ret\nvoid f(BE::Tensor out) { nonsense; }\n")
threads = [threading.Thread(target=lambda: [load("report_a", 1) for _ in range(500)]) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
show("all")
print([(one.name, one.origin, one.build_ms > 0) for one in kernix.report().loads])
print(kernix.report())
sys.stdout.flush()
if os.fork() == 0:
    load("report_a", 1)
    show("child")
    sys.stdout.flush()
    os._exit(0)
os.wait()
