# SPDX-License-Identifier: Apache-2.0
"""Load the same kernel in a pool of processes, started in the way that the argument names."""

import multiprocessing
import os
import sys

import kernels

import kernix


def load(barrier):
    """Load the kernel together with the other processes; return its key and who loaded it."""
    barrier.wait()
    return kernix.load_cpp_inline("pooled", kernels.constant(1), auto_register=False).key, os.getpid()


if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    with context.Manager() as manager, context.Pool(4) as pool:
        results = pool.map(load, [manager.Barrier(4)] * 4, chunksize=1)
    keys, processes = zip(*results, strict=True)
    print("one key," if len(set(keys)) == 1 else "keys differ,", len(set(processes)), "processes")
