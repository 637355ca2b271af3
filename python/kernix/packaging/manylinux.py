# SPDX-License-Identifier: Apache-2.0
"""The platform tag of a wheel, from the symbol versions that its libraries need."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable

__all__ = ["platform_tag"]

#: manylinux2014, the oldest tag that today's pips see in the wild.
_OLDEST = 17

#: What the tag manylinux_2_N allows, by library: the newest version, and N. As auditwheel has it for both processors.
_NEWEST = {
    "GLIBCXX": {
        (3, 4, 19): 17,
        (3, 4, 22): 24,
        (3, 4, 24): 27,
        (3, 4, 28): 31,
        (3, 4, 29): 34,
        (3, 4, 30): 35,
        (3, 4, 33): 39,
    },
    "CXXABI": {(1, 3, 7): 17, (1, 3, 10): 24, (1, 3, 11): 27, (1, 3, 12): 31, (1, 3, 13): 34, (1, 3, 15): 39},
    "GCC": {(4, 8, 0): 17, (7, 0, 0): 27, (12, 0, 0): 35, (14, 0, 0): 39},
}


def platform_tag(needs: Iterable[str]) -> str:
    """Return the tag of the oldest systems like this one that have these symbol versions: ``"manylinux_2_28_x86_64"``.

    Parameters
    ----------
    needs : iterable of str
        ``"GLIBC_2.34"``, ``"GLIBCXX_3.4.30"``.

    Raises
    ------
    ValueError
        If no tag is known to promise one of them.
    """
    minor = max((_minor_for(need) for need in needs), default=_OLDEST)
    return f"manylinux_2_{max(minor, _OLDEST)}_{platform.machine()}"


def _minor_for(need: str) -> int:
    library, _, text = need.partition("_")
    if need == "GLIBC_ABI_DT_RELR":
        return 36
    if re.fullmatch(r"\d+(\.\d+)*", text):
        version = tuple(int(part) for part in text.split("."))
        if library == "GLIBC":
            return version[1]
        for newest, minor in _NEWEST.get(library, {}).items():
            if version <= newest:
                return minor
    raise ValueError(f"no manylinux tag promises {need}, which the compiled kernels need")
