# SPDX-License-Identifier: Apache-2.0
"""The signature of a compiled function, read from its tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from kernix.calling.array_types import ArrayType, ArrayTypes, read_array_type

__all__ = ["Count", "Signature", "read_signature"]


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
                    f"{function}(): attribute {names[last]!r} is given, so {name!r}, which stands before it, must be, "
                    "too: C++ can leave out default arguments at the end only"
                )
        return {name: kind for name, kind in self.attributes.items() if name not in left_out}

    def parameters(self) -> list[str]:
        """Return the parameters in Python syntax."""
        arrays = [f"arg{i}" for i in range(self.arguments.least)]
        arrays += [f"arg{i}=None" for i in range(self.arguments.least, self.arguments.most or 0)]
        if self.arguments.most is None:
            arrays.append("*args")
        elif arrays:
            arrays.append("/")
        default = dict.fromkeys(self.defaults, " = ...")
        attributes = [f"{name}: {kind}{default.get(name, '')}" for name, kind in self.attributes.items()]
        separator = [] if self.arguments.most is None else ["*"]
        return [*arrays, *separator, *attributes, "out=None"]


# The number of arrays for a token, by the suffix of its kind.
_COUNTS = {"": Count(1, 1), "?": Count(0, 1), "...": Count(0, None)}


def read_signature(tokens: Sequence[str], names: Sequence[str] = ()) -> Signature:
    """Read the canonical tokens of a function.

    Parameters
    ----------
    tokens : sequence of str
        In libkernix' form, for example ``["arg:float32", "args...", "ret", "attr.scale:float32", "stream"]``.
    names : sequence of str, optional
        The names of the C++ parameters, for messages. A name may be empty.

    Returns
    -------
    Signature
    """
    arguments = results = Count(0, 0)
    attributes: dict[str, str] = {}
    order_tokens: list[str] = []
    defaults: list[str] = []
    argument_types = result_types = ArrayTypes()
    for token, name in zip_longest(tokens, names[: len(tokens)], fillvalue=""):
        kind, count = _split(token)
        kind, array_type = _take_type(kind, name)
        if kind == "arg":
            if count.most is not None:
                argument_types = argument_types.add(array_type, after_rest=arguments.most is None)
            arguments = _add(arguments, count)
        elif kind == "ret":
            if count.most is not None:
                result_types = result_types.add(array_type, after_rest=results.most is None)
            results = _add(results, count)
        elif kind in ("arg.token", "ret.token"):
            order_tokens.append(kind)
        elif kind.startswith("attr."):
            name, _, attribute_type = kind.removeprefix("attr.").partition(":")
            attributes[name] = attribute_type.removesuffix("?")
            if attribute_type.endswith("?"):
                defaults.append(name)
    shown = arguments, results, attributes, tuple(order_tokens), frozenset(defaults)
    return Signature(*shown, argument_types, result_types)


def _split(token: str) -> tuple[str, Count]:
    """Return a token's kind and, for a token of arrays, their number."""
    for suffix in ("...", "?"):
        if token.endswith(suffix) and not token.startswith("attr."):
            kind = token.removesuffix(suffix)
            return {"args": "arg", "rets": "ret"}.get(kind, kind), _COUNTS[suffix]
    return token, _COUNTS[""]


def _take_type(kind: str, name: str) -> tuple[str, ArrayType | None]:
    """Split ``arg:float32`` into ``arg`` and the type."""
    if not kind.startswith(("arg:", "ret:")):
        return kind, None
    kind, _, arrays = kind.partition(":")
    return kind, read_array_type(arrays, name)


def _add(one: Count, two: Count) -> Count:
    most = None if one.most is None or two.most is None else one.most + two.most
    return Count(one.least + two.least, most)
