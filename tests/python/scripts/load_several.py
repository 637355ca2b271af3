# SPDX-License-Identifier: Apache-2.0
"""Load several modules at once, each from a source of its own, without JAX; say how many."""

import sys
from concurrent.futures import ThreadPoolExecutor

import kernels

import kernix


def load(value):
    """Load a module whose function writes `value`."""
    return kernix.load_cpp_inline(f"several{value}", kernels.constant(value), auto_register=False)


first = int(sys.argv[1])
with ThreadPoolExecutor(4) as pool:
    print(len({module.key for module in pool.map(load, range(first, first + 4))}))
