# SPDX-License-Identifier: Apache-2.0
"""Resources that kernels use on a GPU."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["KernelResources"]


class KernelResources(NamedTuple):
    """The resources of one kernel on one architecture. Sizes are in bytes.

    Attributes
    ----------
    name : str
        The kernel's C++ name, ``"add(float const*, float*, int)"``.
    symbol : str
        The kernel's symbol, as profilers show it.
    architecture : str
        ``"sm_90"``.
    registers : int
        Registers per thread.
    shared_memory : int
        Statically declared shared memory per block. The compiler does not know how much a launch adds.
    stack_frame : int
        Local memory per thread.
    spill_stores, spill_loads : int
        Bytes that a thread writes to local memory, and reads from it, because it lacks registers.
    constant_memory : int
        Constant memory in all banks.
    barriers : int
        ``__syncthreads()`` and similar; 0 if ptxas does not report them, as in CUDA 12.0.
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
