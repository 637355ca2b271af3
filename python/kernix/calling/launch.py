# SPDX-License-Identifier: Apache-2.0
"""How a call launches a ``__global__`` function: ``grid=``, ``block=``, ``shared=``, ``cluster=``, ``cooperative=``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from kernix.calling.attributes import Attribute, convert_attributes, whole_number

_REQUIRED = ("grid", "block")

#: The attributes that a call may omit, each with the default that is shown.
LAUNCH_DEFAULTS = {"shared": 0, "cluster": None, "cooperative": False}

#: Names of the attributes, in the order in which they are shown.
LAUNCH = (*_REQUIRED, *LAUNCH_DEFAULTS)

# The most of each size on every device (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability").
_MOST = {"grid": (2**31 - 1, 65535, 65535), "block": (1024, 1024, 64), "cluster": (2**31 - 1, 65535, 65535)}
_MOST_THREADS = 1024
_MOST_BYTES = 2**31 - 1


_Sizes = tuple[int, int, int]  # of a grid, block or cluster: x, y, z


def split_launch(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split the attributes of a call into those of the launch, and the function's own.

    An attribute of a launch that is ``None`` counts as left out.
    """
    launch = {name: given[name] for name in LAUNCH if given.get(name) is not None}
    return launch, {name: value for name, value in given.items() if name not in LAUNCH}


def launch_attributes(function: str, given: Mapping[str, Any]) -> dict[str, Attribute]:
    """Convert the attributes of a launch to the handler's, where sizes have three numbers.

    ``grid``, ``block`` and ``cluster`` are integers or sequences of one to three; ``shared`` is a number of bytes,
    ``cooperative`` a bool. `function` is a name for messages.

    Raises
    ------
    TypeError
        If the grid or the block is missing, or if a value is not a whole number.
    ValueError
        If CUDA allows no such size.
    """
    missing = [name for name in _REQUIRED if name not in given]
    if missing:
        needs = " and ".join(f"{name}=" for name in missing)
        raise TypeError(f"{function}() is a __global__ function: it needs {needs}, an integer or a tuple of up to 3")
    sizes = {name: _sizes(function, name, given[name]) for name in _MOST if name in given}
    _check_together(function, **sizes)
    attributes = {name: Attribute("int64[]", list(size)) for name, size in sizes.items()}
    if "shared" in given:
        attributes |= convert_attributes(function, {"shared": "int64"}, {"shared": given["shared"]})
        _check_shared(function, attributes["shared"].value)
    if "cooperative" in given:
        attributes |= convert_attributes(function, {"cooperative": "bool"}, {"cooperative": given["cooperative"]})
    return attributes


def _sizes(function: str, name: str, value: Any) -> _Sizes:
    is_sequence = isinstance(value, (list, tuple, range)) or getattr(value, "shape", ()) != ()
    values = [_size(function, name, each) for each in (value if is_sequence else [value])]
    if not 1 <= len(values) <= 3:
        raise ValueError(f"{function}(): {name} has {len(values)} sizes; it takes 1 to 3")
    x, y, z = (*values, 1, 1)[:3]
    sizes = x, y, z
    for axis, size, most in zip("xyz", sizes, _MOST[name], strict=True):
        if not 1 <= size <= most:
            shown = f"{sizes}; its {axis}" if len(values) > 1 else f"{size}; it"
            hint = ": arrays without elements need no launch" if name == "grid" and size == 0 else ""
            raise ValueError(f"{function}(): {name} is {shown} must be 1 to {most}{hint}")
    return sizes


def _size(function: str, name: str, value: Any) -> int:
    try:
        return whole_number(value, "an integer or a tuple of up to 3")
    except (TypeError, ValueError) as error:
        kind = ValueError if isinstance(value, int) else TypeError
        raise kind(f"{function}(): {name} {error}") from None


def _check_together(function: str, grid: _Sizes, block: _Sizes, cluster: _Sizes | None = None) -> None:
    threads = math.prod(block)
    if threads > _MOST_THREADS:
        raise ValueError(f"{function}(): block is {block}, {threads} threads; a block has at most {_MOST_THREADS}")
    if cluster and any(size % part for size, part in zip(grid, cluster, strict=True)):
        raise ValueError(f"{function}(): grid is {grid}, which clusters of {cluster} do not divide")


def _check_shared(function: str, shared: int) -> None:
    if not 0 <= shared <= _MOST_BYTES:
        raise ValueError(f"{function}(): shared is {shared}; it must be 0 to {_MOST_BYTES} bytes")
