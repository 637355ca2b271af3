# SPDX-License-Identifier: Apache-2.0
"""Load several modules at once, each from a source of its own, without JAX; say how many.

python load_several.py FIRST [COUNT]
"""

import sys
from concurrent.futures import ThreadPoolExecutor

import kernels

import kernix


def load(value):
    """Load a module whose function writes `value`."""
    return kernix.load_cpp_inline(f"several{value}", kernels.constant(value), auto_register=False)


first, count = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 4
with ThreadPoolExecutor(count) as pool:
    print(len({module.key for module in pool.map(load, range(first, first + count))}))
