# SPDX-License-Identifier: Apache-2.0
"""What a search is asked for, checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from kernix._errors import KernelRequestError
from kernix.loading.module import CompiledModule
from kernix.tuning.check import Check
from kernix.tuning.source import Source
from kernix.tuning.space import Settings, Space


class Plan(NamedTuple):
    """What to search, and how."""

    source: Source
    space: Space
    variants: Sequence[Settings]
    attributes: Sequence[dict[str, Any]]  # of the call of each variant
    function: str | None
    check: Check
    allow_spills: bool
    repeats: int
    at_once: int


def only_function(module: CompiledModule, function: str | None) -> str:
    """Return the function to tune: the given one, or the only one of the module."""
    if function is not None:
        module._code.check(function)
        return function
    if len(module.function_names) != 1:
        raise KernelRequestError(f"say which function= to tune: {module.name} has {', '.join(module.function_names)}")
    return module.function_names[0]
