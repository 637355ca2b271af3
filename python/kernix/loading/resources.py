# SPDX-License-Identifier: Apache-2.0
"""What kernels use of a GPU."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["KernelResources"]


class KernelResources(NamedTuple):
    """What one kernel needs on one architecture. Sizes are in bytes.

    Attributes
    ----------
    name : str
        The kernel as C++ names it, ``"add(float const*, float*, int)"``.
    symbol : str
        Its symbol, as a profiler shows it.
    architecture : str
        ``"sm_90"``.
    registers : int
        Of each thread.
    shared_memory : int
        Of each block, as the source declares it. What a launch adds is not known to the compiler.
    stack_frame : int
        Local memory of each thread.
    spill_stores, spill_loads : int
        What a thread writes to local memory, and reads from it, for lack of registers.
    constant_memory : int
        In all banks.
    barriers : int
        ``__syncthreads()`` and its like; 0 where ptxas does not say, as that of CUDA 12.0.
    """

    name: str
    symbol: str
    architecture: str
    registers: int = 0
    shared_memory: int = 0
    stack_frame: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    constant_memory: int = 0
    barriers: int = 0


KernelResources.__module__ = "kernix"
