# SPDX-License-Identifier: Apache-2.0
"""What ptxas says about the resources that kernels use, as data."""

from __future__ import annotations

import re
from typing import NamedTuple

from kernix import _core

__all__ = ["KernelResources", "read_resources"]


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


class _Entry(NamedTuple):
    symbol: str
    numbers: dict[str, int]


_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_FUNCTION = re.compile(r"Function properties for (\S+)")
_NUMBERS = {
    "stack_frame": re.compile(r"(\d+) bytes stack frame"),
    "spill_stores": re.compile(r"(\d+) bytes spill stores"),
    "spill_loads": re.compile(r"(\d+) bytes spill loads"),
    "registers": re.compile(r"Used (\d+) registers"),
    "shared_memory": re.compile(r"(\d+)(?:\+\d+)? bytes smem"),
    "barriers": re.compile(r"used (\d+) barriers"),
}
_CONSTANT = re.compile(r"(\d+) bytes cmem\[\d+\]")


def read_resources(text: str, architecture: str) -> list[KernelResources]:
    """Return the kernels that `text`, the output of ``ptxas -v``, tells of, in its order.

    Functions that kernels call, rather than kernels, are left out.
    """
    entries: list[_Entry] = []
    current: _Entry | None = None
    for line in text.splitlines():
        if entry := _ENTRY.search(line):
            current = _Entry(entry[1], {})
            entries.append(current)
        elif function := _FUNCTION.search(line):
            # Lines about a device function may stand between those about a kernel.
            current = next((known for known in entries if known.symbol == function[1]), None)
        elif current is not None:
            _read_numbers(line, current)
    return [
        KernelResources(_core.demangle(entry.symbol), entry.symbol, architecture, **entry.numbers) for entry in entries
    ]


def _read_numbers(line: str, entry: _Entry) -> None:
    for name, pattern in _NUMBERS.items():
        if found := pattern.search(line):
            entry.numbers[name] = int(found[1])
    if banks := _CONSTANT.findall(line):
        entry.numbers["constant_memory"] = sum(map(int, banks))
