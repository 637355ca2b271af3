# SPDX-License-Identifier: Apache-2.0
"""What a variant's CUDA kernels need of a GPU, and whether that rules the variant out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kernix import _core
from kernix._errors import KernelError
from kernix.loading.module import CompiledModule, KernelResources


class Fit(NamedTuple):
    """The resources of a module's kernels.

    Attributes
    ----------
    outcome : str
        ``"spills"``, ``"does not fit"``, or empty if the variant may run.
    reason : str
        Why it may not.
    numbers : dict
        ``registers``, ``shared_memory`` and ``spills``, as :class:`kernix.TuningRow` has them.
    """

    outcome: str = ""
    reason: str = ""
    numbers: Mapping[str, int | None] = {}


def fit_of(module: CompiledModule, function: str, attributes: Mapping[str, Any], allow_spills: bool) -> Fit:
    """Return whether the kernels of a CUDA module fit a GPU, for a call with these attributes."""
    if module.platform == "cpu":
        return Fit()
    try:
        resources = _of_this_gpu(module.resources())
    except KernelError:  # machine code that cannot be read, as that of debug=True
        return Fit()
    numbers = {
        "registers": max((kernel.registers for kernel in resources), default=None),
        "shared_memory": max((kernel.shared_memory for kernel in resources), default=None),
        "spills": max((spilled for kernel in resources if (spilled := _spills(kernel)) is not None), default=None),
    }
    if numbers["spills"] and not allow_spills:
        worst = max(resources, key=lambda kernel: _spills(kernel) or 0)
        return Fit("spills", f"{worst.name}: {_spills(worst)} bytes on {worst.architecture}", numbers)
    launched = [kernel for kernel in resources if _is_kernel_of(function, kernel)]
    if module._code.info(function).is_global and launched:
        return _fit_of_launch(launched, attributes, numbers)
    return Fit(numbers=numbers)


def _fit_of_launch(
    kernels: Sequence[KernelResources], attributes: Mapping[str, Any], numbers: Mapping[str, int | None]
) -> Fit:
    block, shared = attributes.get("block", 1), attributes.get("shared") or 0
    for kernel in kernels:
        if kernel.occupancy(block, shared) == 0:
            needs = f"{kernel.registers} registers and {kernel.shared_memory + shared} bytes of shared memory"
            return Fit("does not fit", f"a block of {block} with {needs} on {kernel.architecture}", numbers)
    return Fit(numbers=numbers)


def _of_this_gpu(resources: Sequence[KernelResources]) -> list[KernelResources]:
    """Return the resources of the code that this machine's GPU runs, or all if there is no GPU."""
    try:
        own = _numbers(_core.gpu_architecture())
    except KernelError:
        return list(resources)
    built = {_numbers(kernel.architecture) for kernel in resources}
    runs = max((numbers for numbers in built if numbers[0] == own[0] and numbers <= own), default=None)
    return [kernel for kernel in resources if _numbers(kernel.architecture) == runs]


def _numbers(architecture: str) -> tuple[int, int]:
    """Return ``(9, 0)`` for ``"sm_90a"``."""
    return divmod(int(re.sub(r"\D", "", architecture)), 10)


def _spills(kernel: KernelResources) -> int | None:
    if kernel.spill_stores is None and kernel.spill_loads is None:
        return None
    return (kernel.spill_stores or 0) + (kernel.spill_loads or 0)


def _is_kernel_of(function: str, kernel: KernelResources) -> bool:
    """Return whether a kernel's C++ name is that of an exported function, ``scale<float>`` being ``scale_float``."""
    name = kernel.name.partition("(")[0].removeprefix("void ")
    return re.sub(r"\W+", "_", name).strip("_") == function
