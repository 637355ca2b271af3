# SPDX-License-Identifier: Apache-2.0
"""The ``defines`` of a load, as flags."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from typing import SupportsIndex

from kernix._errors import KernelRequestError
from kernix.loading.request import check_text

__all__ = ["Defines", "define_flags"]

#: Values of macros by name. A str is C++ text, a bool is 1 or 0, and None is the compilers' default, 1.
Defines = Mapping[str, SupportsIndex | float | str | None] | None


def define_flags(defines: Defines, *, for_nvcc: bool = False) -> tuple[str, ...]:
    """Return a ``-D`` flag for each macro, as C++ compilers or nvcc take them.

    Raises
    ------
    TypeError
        If `defines` is not a mapping, or a value is of another type.
    KernelRequestError
        If a name is not that of a macro, or a value is not finite or has more than one line.
    """
    if defines is None:
        return ()
    if not isinstance(defines, Mapping):
        raise TypeError(f"defines must be a dict of names and values, not {defines!r}")
    return tuple(word for name, value in defines.items() for word in _words(name, value, for_nvcc))


def _words(name: str, value: SupportsIndex | float | str | None, for_nvcc: bool) -> tuple[str] | tuple[str, str]:
    if not isinstance(name, str) or not name.isidentifier() or not name.isascii() or name == "defined":
        raise KernelRequestError(f"defines: {name!r} is not the name of a macro")
    text = "" if value is None else f"={_text(name, value)}"
    macro = name + (_escaped_for_nvcc(text) if for_nvcc else text)
    # In one word, "a -b" could be two flags in one string, which is an error.
    return ("-D", macro) if " -" in macro.expandtabs(1) else (f"-D{macro}",)


def _text(name: str, value: SupportsIndex | float | str) -> str:
    if isinstance(value, str):
        if "\n" in value or "\r" in value:
            raise KernelRequestError(f"defines[{name!r}] has more than one line: {value!r}")
        return check_text(f"defines[{name!r}]", value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise KernelRequestError(f"defines[{name!r}] is {value}, which C++ has no literal for: pass an expression")
        return _number(repr(float(value)))
    try:
        return _number(str(operator.index(value)))
    except TypeError:
        kind = type(value).__qualname__
        raise TypeError(f"defines[{name!r}] must be an int, float, bool, str or None, not {kind}") from None


def _number(literal: str) -> str:
    return f"({literal})" if literal.startswith("-") else literal  # or "x-N" would be "x--1"


def _escaped_for_nvcc(text: str) -> str:
    """Return `text` so that nvcc, for which a comma outside of a literal begins another macro, reads it as it is."""
    import re

    literal = r'"(?:\\.|[^"\\])*(?:"|$)' + "|" + r"'(?:\\.|[^'\\])*(?:'|$)"
    return re.sub(rf"({literal})|[\\,]", lambda found: found[1] or "\\" + found[0], text)
