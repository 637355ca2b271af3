# SPDX-License-Identifier: Apache-2.0
"""The signature of a compiled function: what a call takes, and the check of its arrays."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kernix import _core
from kernix.calling.call import OPTIONS
from kernix.calling.launch import LAUNCH


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
        """Check arrays, or descriptions of arrays, against these types. One without dtype and shape is not checked.

        `function` and `what` (``"argument"`` or ``"result"``) are for messages. `name_of_dtype` returns the name of an
        element type; `hint` the end of the message for the type that a parameter takes and the one that it got.

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


class Count(NamedTuple):
    """A number of arrays: from `least` to `most`, or at least `least` if `most` is ``None``."""

    least: int
    most: int | None

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and self.least <= number and (self.most is None or number <= self.most)

    def __str__(self) -> str:
        if self.most is None:
            return f"{self.least} or more"
        return str(self.least) if self.least == self.most else f"{self.least} to {self.most}"


class Signature(NamedTuple):
    """The parameters and results of a function, without those that XLA or kernix provides (stream, scratch memory)."""

    arguments: Count
    results: Count
    attributes: Mapping[str, str]  # name to type, in the order of the function's parameters
    order_tokens: tuple[str, ...]  # the tokens that order side effects in XLA
    defaults: frozenset[str] = frozenset()  # the last attributes, which a call may omit
    argument_types: ArrayTypes = ArrayTypes()
    result_types: ArrayTypes = ArrayTypes()
    argument_names: tuple[str, ...] = ()  # of the arguments before `args...`, as help shows them

    def expected(self, function: str, given: Mapping[str, object]) -> Mapping[str, str]:
        """Return the `attributes` that a call with the attributes `given` must have.

        Raises
        ------
        TypeError
            If the call omits one of `defaults` but not a later attribute.
        """
        if not self.defaults or not all(name in self.attributes for name in given):
            return self.attributes
        names = list(self.attributes)
        left_out = [name for name in names if name in self.defaults and name not in given]
        last = max((names.index(name) for name in given), default=-1)
        for name in left_out:
            if names.index(name) < last:
                raise TypeError(
                    f"{function}(): attribute {names[last]!r} is given, so give {name!r} before it, too: C++ can "
                    "leave out default arguments only at the end"
                )
        return {name: kind for name, kind in self.attributes.items() if name not in left_out}

    def parameters(self, launch: Sequence[str] = ()) -> list[str]:
        """Return the parameters in Python syntax, with those of a launch after the attributes."""
        arrays = []
        for place, (name, array_type) in enumerate(zip(self.argument_names, self.argument_types.first, strict=True)):
            kind = "" if array_type is None else f": {array_type.short()}"
            default = "" if place < self.arguments.least else " = None" if kind else "=None"
            arrays.append(name + kind + default)
        if self.arguments.most is None:
            arrays.append("*args")
        elif arrays:
            arrays.append("/")
        defaults = dict.fromkeys(self.defaults, " = ...")
        attributes = [f"{name}: {kind}{defaults.get(name, '')}" for name, kind in self.attributes.items()]
        separator = [] if self.arguments.most is None else ["*"]
        return [*arrays, *separator, *attributes, *launch, "out=None"]


_Role = _core.Parameter.Role


def read_signature(function: _core.FunctionInfo) -> Signature:
    """Read the parameters of a function."""
    parameters = function.parameters
    attributes = {each.name: each.type for each in parameters if each.role == _Role.ATTRIBUTE}
    defaults = frozenset(each.name for each in parameters if each.role == _Role.ATTRIBUTE and each.optional)
    order = tuple(_ORDER_TOKENS[each.role] for each in parameters if each.role in _ORDER_TOKENS)
    arguments = [each for each in parameters if each.role == _Role.ARGUMENT]
    results = [each for each in parameters if each.role == _Role.RESULT]
    types = _types_of(arguments), _types_of(results)
    names = _names_of(arguments, {*attributes, *OPTIONS, *(LAUNCH if function.is_global else ())})
    return Signature(_count_of(arguments), _count_of(results), attributes, order, defaults, *types, names)


def calls_of(function: _core.FunctionInfo) -> object:
    """Return a value that is equal for functions that take the same calls."""
    parts: dict[_core.Parameter.Role, list[object]] = {role: [] for role in _Role.__members__.values()}
    for each in function.parameters:
        name = each.name if each.role == _Role.ATTRIBUTE else ""  # a call does not name arrays
        parts[each.role].append((name, each.type, each.rank, each.optional, each.variadic))
    del parts[_Role.PROVIDED]
    return function.is_global, parts


_ORDER_TOKENS = {_Role.ARGUMENT_TOKEN: "arg.token", _Role.RESULT_TOKEN: "ret.token"}


def _count_of(arrays: Sequence[_core.Parameter]) -> Count:
    """Return how many arrays a call passes for some parameters."""
    least = sum(not each.optional and not each.variadic for each in arrays)
    return Count(least, None if any(each.variadic for each in arrays) else len(arrays))


def _types_of(arrays: Sequence[_core.Parameter]) -> ArrayTypes:
    """Return what some parameters take."""
    types = [ArrayType(each.type, each.rank, each.name) if each.type else None for each in arrays]
    rest = _before_rest(arrays)
    return ArrayTypes(tuple(types[:rest]), tuple(types[rest + 1 :]))


def _before_rest(arrays: Sequence[_core.Parameter]) -> int:
    """Return the number of parameters before `args...` or `rets...`."""
    return next((place for place, each in enumerate(arrays) if each.variadic), len(arrays))


def _names_of(arguments: Sequence[_core.Parameter], taken: set[str]) -> tuple[str, ...]:
    """Return the names that help shows: those of C++, as ``in_`` if Python or a call uses one, or else ``arg0``."""
    names: list[str] = []
    for place, each in enumerate(arguments[: _before_rest(arguments)]):
        name = each.name if each.name.isidentifier() else f"arg{place}"
        while keyword.iskeyword(name) or name in {*taken, *names, "args"}:
            name += "_"
        names.append(name)
    return tuple(names)
