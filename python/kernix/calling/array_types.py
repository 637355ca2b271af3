# SPDX-License-Identifier: Apache-2.0
"""The arrays that typed parameters take, and the check of a call's arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

__all__ = ["ArrayType", "ArrayTypes"]


class ArrayType(NamedTuple):
    """The arrays that a parameter takes: of one element type and, unless `rank` is ``None``, of one rank."""

    dtype: str
    rank: int | None
    name: str  # of the C++ parameter; may be empty

    def fits(self, dtype: str, shape: Sequence[int]) -> bool:
        """Return whether the parameter takes an array."""
        return dtype == self.dtype and (self.rank is None or len(shape) == self.rank)

    def short(self) -> str:
        """Return ``float32`` or ``float32[2]``."""
        return self.dtype if self.rank is None else f"{self.dtype}[{self.rank}]"

    def __str__(self) -> str:
        dimensions = "" if self.rank is None else f" ({self.rank} dimension{'' if self.rank == 1 else 's'})"
        return self.short() + dimensions


class ArrayTypes(NamedTuple):
    """What the arguments, or the results, of a function take: ``None`` for arrays of any type."""

    first: tuple[ArrayType | None, ...] = ()
    last: tuple[ArrayType | None, ...] = ()  # of those that follow `args...` or `rets...`

    def __bool__(self) -> bool:
        return any(self.first) or any(self.last)

    def check(
        self,
        function: str,
        what: str,
        arrays: Sequence[Any],
        name_of_dtype: Callable[[Any], str],
        hint: Callable[[str, str], str],
    ) -> None:
        """Check arrays, or descriptions of arrays, against these types.

        Parameters
        ----------
        function, what : str
            The function's name and ``"argument"`` or ``"result"``, for messages.
        arrays : sequence
            What a call passes. An element without dtype and shape is not checked.
        name_of_dtype : callable
            Returns the name of an element type.
        hint : callable
            Returns the end of the message for the element type that a parameter takes and the one that it got.

        Raises
        ------
        TypeError
            If one of them has another element type or rank.
        """
        for place, kind in self._places(len(arrays)):
            dtype, shape = getattr(arrays[place], "dtype", None), getattr(arrays[place], "shape", None)
            if dtype is None or shape is None or not hasattr(shape, "__len__"):
                continue
            given = name_of_dtype(dtype)
            if not kind.fits(given, shape):
                named = f" ({kind.name})" if kind.name else ""
                extents = "" if kind.rank is None else f"[{','.join(map(str, shape))}]"
                raise TypeError(
                    f"{function}(): {what} {place}{named} takes {kind}, got {given}{extents}{hint(kind.dtype, given)}"
                )

    def _places(self, count: int) -> Iterator[tuple[int, ArrayType]]:
        """Return the typed places of a call with `count` arrays."""
        places: Iterable[tuple[int, ArrayType | None]] = enumerate(self.first[:count])
        yield from ((place, kind) for place, kind in places if kind)
        begin = count - len(self.last)
        yield from ((place, kind) for place, kind in enumerate(self.last, begin) if kind and place >= len(self.first))
