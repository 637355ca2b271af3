# SPDX-License-Identifier: Apache-2.0
"""Resources that kernels use on a GPU."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import NamedTuple, SupportsIndex

from kernix import _core

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
    spill_stores, spill_loads : int or None
        Bytes that a thread writes to local memory, and reads from it, because it lacks registers: the sum over the
        instructions. None if the machine code does not say, as before CUDA 12.6.
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
    spill_stores: int | None = None
    spill_loads: int | None = None
    constant_memory: int = 0
    barriers: int = 0

    def occupancy(self, block: SupportsIndex | Sequence[SupportsIndex], shared: SupportsIndex = 0) -> float | None:
        """Return the share of a multiprocessor's warps that run at once, from 0 to 1.

        Registers, shared memory and a multiprocessor's limits of warps and blocks bound it.

        Parameters
        ----------
        block : int or tuple of up to three
            The size of a block, as a launch has it.
        shared : int
            Bytes of shared memory that the launch adds for each block.

        Returns
        -------
        float or None
            0 if such a block does not fit. None if kernix does not know the limits of the architecture.
        """
        sizes = [operator.index(size) for size in (block if isinstance(block, Sequence) else [block])]
        added = operator.index(shared)
        if not 1 <= len(sizes) <= 3 or min(sizes) < 1:
            raise ValueError(f"block is {block!r}; it must be 1 to 3 numbers of threads, each at least 1")
        if added < 0:
            raise ValueError(f"shared is {added}; it must be a number of bytes, at least 0")
        # What is larger than this fits nowhere, whatever it is.
        largest = 2**31
        threads, added = min(math.prod(sizes), largest), min(added, largest)
        return _core.occupancy(self.architecture, self.registers, self.shared_memory, threads, added)


KernelResources.__module__ = "kernix"
