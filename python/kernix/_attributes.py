# SPDX-License-Identifier: Apache-2.0
"""Attributes of a call: from what a user writes to a value of the type that the function declares."""

from __future__ import annotations

import numbers
import operator
import struct
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kernix._arrays import imported_jax

__all__ = ["Attribute", "convert_attributes", "to_numpy"]

_INTEGERS = {
    "bool": (0, 1),
    **{f"int{bits}": (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (0, (1 << bits) - 1) for bits in (8, 16, 32, 64)},
}
_FORMATS = {"float16": "<e", "float32": "<f", "float64": "<d"}  # "<": only then Python checks the range
_HALVES = ("float16", "bfloat16")


class Attribute(NamedTuple):
    """A value that is known to fit its type: halves are their bits, arrays are lists."""

    type: str
    value: Any


def convert_attributes(function: str, declared: Mapping[str, str], given: Mapping[str, Any]) -> dict[str, Attribute]:
    """Return the attributes of a call, each as the type that it is declared with.

    Parameters
    ----------
    function : str
        The function's name, for messages.
    declared : mapping
        Names and types of the function's attributes.
    given : mapping
        Names and values of the call.

    Raises
    ------
    TypeError
        When an attribute is missing, unknown, or of another kind than its type.
    ValueError
        When a value does not fit its type.
    """
    unknown = [name for name in given if name not in declared]
    if unknown:
        has = ", ".join(f"{name}: {kind}" for name, kind in declared.items()) or "none"
        raise TypeError(f"{function}() has no attribute {unknown[0]!r}; its attributes: {has}")
    missing = [f"{name}: {kind}" for name, kind in declared.items() if name not in given]
    if missing:
        raise TypeError(f"{function}() needs the attribute{'s' * (len(missing) > 1)} {', '.join(missing)} by keyword")
    return {
        name: Attribute(kind, _convert(f"{function}(): attribute {name!r}", kind, given[name]))
        for name, kind in declared.items()
    }


def to_numpy(attribute: Attribute) -> Any:
    """Return an attribute as ``jax.ffi.ffi_call`` takes it."""
    import numpy as np

    kind = attribute.type.removesuffix("[]")
    if kind == "string":
        return attribute.value
    dtype = np.dtype("uint16" if kind in _HALVES else kind)
    return np.array(attribute.value, dtype) if attribute.type.endswith("[]") else dtype.type(attribute.value)


def _convert(where: str, kind: str, value: Any) -> Any:
    if value is None:
        raise TypeError(f"{where} is None; it must be {_describe(kind)}")
    if _is_traced(value):
        raise TypeError(
            f"{where} is traced by JAX; attributes are constants of the compiled function. Pass a Python number, for "
            "instance through jax.jit(..., static_argnames=...), or make the parameter an array"
        )
    if kind == "string":
        if not isinstance(value, str):
            raise TypeError(f"{where} is {_kind_of(value)}; it must be a str")
        return value
    if kind.endswith("[]"):
        return _array(where, kind.removesuffix("[]"), value)
    return _number(where, kind, value)


def _array(where: str, kind: str, value: Any) -> list[Any]:
    """Return the elements of an array attribute, row after row."""
    is_array = hasattr(value, "__array__") and not hasattr(value, "mask")  # a mask would be lost
    if not is_array and not isinstance(value, (list, tuple, range)):
        raise TypeError(f"{where} is {_kind_of(value)}; it must be a list, tuple or array of {kind}")
    if is_array and value.shape == ():
        raise TypeError(f"{where} is one number; it must be a list, tuple or array of {kind}")
    if is_array and getattr(value.dtype, "name", "") == kind and kind not in _HALVES:
        elements: list[Any] = value.reshape(-1).tolist()  # of this very type: nothing to check
        return elements
    flat = value.reshape(-1) if is_array else _flat(value)
    return [_number(f"{where}, element {i},", kind, element) for i, element in enumerate(flat)]


def _flat(values: Iterable[Any]) -> Iterable[Any]:
    """Return the elements of a list, or of a list of lists of one length."""
    values = list(values)
    if not values or not all(isinstance(value, (list, tuple)) and len(value) == len(values[0]) for value in values):
        return values
    return (element for row in values for element in _flat(row))


def _number(where: str, kind: str, value: Any) -> Any:
    number = _plain_number(value)
    if number is None:
        raise TypeError(f"{where} is {_kind_of(value)}; it must be {_describe(kind)}")
    if kind in _INTEGERS:
        return _integer(where, kind, number)
    return _bits_of_half(where, kind, number) if kind in _HALVES else _real(where, kind, number)


def _plain_number(value: Any) -> int | float | None:
    """Return a Python number for any kind of number or array of one element without dimensions, else ``None``."""
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, (int, float)):
        return value
    try:
        return operator.index(value)
    except TypeError:
        return float(value) if isinstance(value, numbers.Real) else None


def _integer(where: str, kind: str, number: int | float) -> int | bool:
    if isinstance(number, float):
        raise TypeError(f"{where} is the float {number}; it must be {_describe(kind)}")
    least, most = _INTEGERS[kind]
    if not least <= number <= most:
        raise ValueError(f"{where} is {number}, which does not fit {kind} ({least} to {most})")
    return bool(number) if kind == "bool" else int(number)


def _real(where: str, kind: str, number: int | float) -> float:
    try:
        (real,) = struct.unpack(_FORMATS[kind], struct.pack(_FORMATS[kind], float(number)))
    except OverflowError:
        raise ValueError(f"{where} is {number}, which does not fit {kind}") from None
    if isinstance(number, int) and real != number:
        raise ValueError(f"{where} is the integer {number}, which {kind} cannot hold exactly; pass a float to round it")
    return float(real)


def _bits_of_half(where: str, kind: str, number: int | float) -> int:
    if kind == "float16":
        real = _real(where, kind, number)
        return int.from_bytes(struct.pack("<e", real), "little")
    try:
        (bits,) = struct.unpack("<I", struct.pack("<f", float(number)))
    except OverflowError:
        raise ValueError(f"{where} is {number}, which does not fit bfloat16") from None
    if number != number:
        return 0x7FC0
    half = int((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)  # to nearest, ties to even
    if half & 0x7FFF == 0x7F80 and abs(number) != float("inf"):
        raise ValueError(f"{where} is {number}, which does not fit bfloat16")
    return half


def _is_traced(value: Any) -> bool:
    jax = imported_jax()
    return jax is not None and isinstance(value, jax.core.Tracer)


def _describe(kind: str) -> str:
    if kind == "string":
        return "a str"
    return f"a list, tuple or array of {kind.removesuffix('[]')}" if kind.endswith("[]") else f"a number for {kind}"


def _kind_of(value: Any) -> str:
    """Return a value's type for a message."""
    return f"of type {type(value).__qualname__}"
