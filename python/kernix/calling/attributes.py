# SPDX-License-Identifier: Apache-2.0
"""Attributes of a call: conversion of the user's values to the types that the function declares."""

from __future__ import annotations

import functools
import keyword
import math
import numbers
import operator
import struct
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kernix.calling.call import OPTIONS
from kernix.jax.interop import imported_jax

_INTEGERS = {
    "bool": (0, 1),
    **{f"int{bits}": (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (0, (1 << bits) - 1) for bits in (8, 16, 32, 64)},
}
_FORMATS = {"float16": "<e", "float32": "<f", "float64": "<d"}  # "<": only with it does Python check the range
_HALVES = ("float16", "bfloat16")
_MOST_EXACT = {"float32": 1 << 24, "float64": 1 << 53}  # up to these, a real holds every integer


class Attribute(NamedTuple):
    """A value that fits its type. Halves are represented by their bits, arrays by lists."""

    type: str
    value: Any


def convert_attributes(
    function: str,
    declared: Mapping[str, str],
    given: Mapping[str, Any],
    reason_of_name: Callable[[], str] = str,
) -> dict[str, Attribute]:
    """Convert the attributes that a call has `given` to the types that are `declared`.

    `reason_of_name` returns why the call may have a name that is not declared, for the message.

    Raises
    ------
    TypeError
        If an attribute is missing or unknown, or if a value is of the wrong kind for its type.
    ValueError
        If a value does not fit its type.
    """
    _check_names(function, declared, given, reason_of_name)
    attributes: dict[str, Attribute] = {}
    for name, kind in declared.items():
        try:
            attributes[name] = Attribute(kind, _convert(kind, given[name]))
        except (TypeError, ValueError) as error:
            raise _placed(error, f"{function}(): attribute {name!r}") from error.__cause__
    return attributes


def _check_names(
    function: str, declared: Mapping[str, str], given: Mapping[str, Any], reason_of_name: Callable[[], str]
) -> None:
    if declared.keys() == given.keys():
        return
    unknown = [name for name in given if name not in declared]
    if unknown:
        has = ", ".join(f"{name}: {kind}" for name, kind in declared.items()) or "none"
        raise TypeError(f"{function}() has no attribute {unknown[0]!r}{reason_of_name()}; its attributes: {has}")
    missing = [name for name in declared if name not in given]
    shown = ", ".join(f"{name}: {declared[name]}" for name in missing)
    raise TypeError(f"{function}() needs the attribute{'s' * (len(missing) > 1)} {shown} {_how_to_pass(missing)}")


def _how_to_pass(names: Sequence[str]) -> str:
    """Return how to pass attributes of these names: a call has parameters of its own, and Python has keywords."""
    taken = [name for name in names if name in OPTIONS or keyword.iskeyword(name)]
    return f'by attributes={{"{taken[0]}": ...}}, because Python or the call uses that name' if taken else "by keyword"


# The errors below describe only the problem of a value. The caller adds which value it is, because building that text
# costs more than a conversion.


def _placed(error: Exception, place: str) -> Exception:
    kind = TypeError if isinstance(error, TypeError) else ValueError
    return kind(f"{place} {error}")


_LEAST_THAT_NO_INT64_HOLDS = 1 << 63


class Constant:
    """A value for an attribute of ``jax.ffi.ffi_call``, equal only to the same bits of the same type.

    JAX looks up compiled functions by the attributes of a call. In Python, 0.0 equals -0.0, 1 equals True, and a NaN
    does not even equal itself.

    Parameters
    ----------
    kind : str
        Type of the attribute.
    value : NumPy number or array
        The value from which JAX makes the attribute.
    """

    __slots__ = ("_hash", "_key", "_value")

    __array_ufunc__ = None  # so that NumPy leaves comparisons to this class

    def __init__(self, kind: str, value: Any) -> None:
        self._value = value
        self._key = (kind, value.tobytes())
        self._hash = hash(self._key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and self._key == other._key

    def __jax_array__(self) -> Any:
        """Return the value from which JAX makes the attribute. JAX calls this method while it lowers a call."""
        if self._value.shape == () and self._value.dtype == "uint64" and self._value >= _LEAST_THAT_NO_INT64_HOLDS:
            from jaxlib.mlir import ir  # JAX itself converts through int64_t

            return ir.Attribute.parse(f"{self._value} : ui64")
        return self._value

    def __repr__(self) -> str:
        return repr(self._value)


def to_jax(attribute: Attribute) -> Any:
    """Return an attribute in the form that ``jax.ffi.ffi_call`` takes."""
    kind, value = attribute
    if kind == "string":
        return value
    if kind.endswith("[]"):
        import numpy as np

        return Constant(kind, np.array(value, _dtype(kind.removesuffix("[]"))))
    # A cache would treat 0.0 and -0.0 as one value and would never find a NaN.
    findable = value == value and (value or not isinstance(value, float))
    return _kept_constant(kind, value) if findable else _constant(kind, value)


def _constant(kind: str, value: Any) -> Constant:
    return Constant(kind, _dtype(kind).type(value))


_kept_constant = functools.lru_cache(maxsize=1024)(_constant)


@functools.cache
def _dtype(kind: str) -> Any:
    import numpy as np

    return np.dtype("uint16" if kind in _HALVES else kind)


def _convert(kind: str, value: Any) -> Any:
    if value is None:
        raise TypeError(f"is None; it must be {_describe(kind)}")
    _check_not_traced(value)
    if kind == "string":
        return _string(value)
    if kind.endswith("[]"):
        return _array(kind.removesuffix("[]"), value)
    return _number(kind, value)


def _string(value: Any) -> str | bytes:
    if not isinstance(value, (str, bytes)):
        raise TypeError(f"is {_kind_of(value)}; it must be {_describe('string')}")
    text: str | bytes = value
    if isinstance(text, str):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"has a lone surrogate at {error.start}, which UTF-8 cannot encode; pass bytes") from error
    return text


def _array(kind: str, value: Any) -> list[Any]:
    """Return the elements of an array attribute in row-major order."""
    if kind == "uint8" and (content := _bytes_of(value)) is not None:
        return list(content)
    is_array = hasattr(value, "__array__") and not _has_mask(value)
    if not is_array and not isinstance(value, (list, tuple, range)):
        raise TypeError(f"is {_kind_of(value)}; it must be a list, tuple or array of {kind}")
    if is_array and not hasattr(value, "__dlpack__"):  # for example a column of a data frame; arrays all have it
        import numpy as np

        value = np.asarray(value)
    if is_array and value.shape == ():
        raise TypeError(f"is a single number; it must be a list, tuple or array of {kind}")
    elements = value.reshape(-1).tolist() if is_array else list(_flat(value))
    converted = _converted_at_once(kind, elements)
    return [_element(i, kind, each) for i, each in enumerate(elements)] if converted is None else converted


def _converted_at_once(kind: str, elements: list[Any]) -> list[Any] | None:
    """Return what :func:`_number` makes of each element; ``None`` if that has to see them one by one.

    It has to if they are of several types, or if one of them may not fit.
    """
    types = set(map(type, elements))
    if len(types) != 1 or not types <= {bool, int, float} or kind in _HALVES:
        return None
    if kind in _INTEGERS:
        if float in types and not all(map(float.is_integer, elements)):
            return None
        least, most = _INTEGERS[kind]
        elements = list(map(int, elements))
        return elements if least <= min(elements) and max(elements) <= most else None
    if float not in types and max(map(abs, elements)) > _MOST_EXACT.get(kind, 0):
        return None
    try:
        layout = f"<{len(elements)}{_FORMATS[kind][1:]}"
        return list(struct.unpack(layout, struct.pack(layout, *elements)))
    except OverflowError:
        return None


def _bytes_of(value: Any) -> bytes | None:
    """Return the content of bytes, of a structured value of NumPy, and of a structure of ctypes; else ``None``."""
    ctypes = sys.modules.get("ctypes")
    if isinstance(value, (bytes, bytearray, memoryview)) or (ctypes and isinstance(value, ctypes.Structure)):
        if ">" in memoryview(value).format or hasattr(value, "_swappedbytes_"):
            raise ValueError("has a foreign byte order")
        return bytes(value)
    dtype: Any = getattr(value, "dtype", None)
    if getattr(dtype, "names", None) is None:
        return None
    if dtype.newbyteorder("=") != dtype:  # dtype.isnative does not look into arrays within a structure
        raise ValueError(
            f"has a foreign byte order (dtype {dtype}); convert it with .astype(value.dtype.newbyteorder('='))"
        )
    if dtype.hasobject:
        raise TypeError("has fields that are Python objects, which a kernel cannot read")
    return bytes(value.tobytes())


def _element(index: int, kind: str, value: Any) -> Any:
    try:
        return _number(kind, value)
    except (TypeError, ValueError) as error:
        raise _placed(error, f"at element {index}") from error.__cause__


def _flat(values: Iterable[Any]) -> Iterable[Any]:
    """Return the elements of a list, or of nested lists of equal length."""
    values = list(values)
    if not values or not all(isinstance(value, (list, tuple)) and len(value) == len(values[0]) for value in values):
        return values
    return (element for row in values for element in _flat(row))


def whole_number(value: Any, wanted: str) -> int:
    """Return `value` as an ``int`` of 64 bits. The ``TypeError`` or ``ValueError`` says that it must be `wanted`."""
    return int(_number("int64", value, wanted))


def _number(kind: str, value: Any, wanted: str = "") -> Any:
    number = value if isinstance(value, (int, float)) else _plain_number(value, kind in _INTEGERS)
    if number is None:
        raise TypeError(f"is {_kind_of(value)}; it must be {wanted or _describe(kind)}")
    if kind in _INTEGERS:
        return _integer(kind, number, wanted)
    return _bits_of_half(kind, number) if kind in _HALVES else _real(kind, number)


def _plain_number(value: Any, whole: bool) -> int | float | None:
    """Return a Python number for a number of any type or for an array of one element without dimensions, else ``None``.

    If `whole` is true and the number is not exactly a whole one, raise ``ValueError``.
    """
    _check_not_traced(value)
    if _has_mask(value):
        return None
    try:
        if getattr(value, "shape", None) == () and hasattr(value, "item"):
            value = value.item()
        if isinstance(value, (int, float)):
            return value
        if hasattr(value, "__index__"):
            return operator.index(value)
        if not isinstance(value, numbers.Real):
            return None
        exact = _exactly(value) if whole else None
        if exact is not None:
            return exact
        number = float(value)
    except (ArithmeticError, TypeError, ValueError) as error:
        if isinstance(value, numbers.Real):
            raise ValueError(f"is a {type(value).__qualname__} that no float can hold") from error
        raise TypeError(f"is {_kind_of(value)}, which does not convert to a number: {error}") from error
    if math.isinf(number) and number != value:  # a wider NumPy type
        raise ValueError(f"is {value!s}, which no float can hold")
    if whole and number.is_integer():
        raise ValueError(f"is a {type(value).__qualname__} close to {number}, but not a whole number")
    return number


def _exactly(value: Any) -> int | None:
    """Return a real number as an ``int`` if it is a whole number."""
    is_finite = value == value and abs(value) != math.inf
    return int(value) if is_finite and int(value) == value else None


def _has_mask(value: Any) -> bool:
    """Return whether a value is a masked NumPy value, whose mask would be lost. In pandas, `mask` is a method."""
    return hasattr(value, "mask") and not callable(value.mask)


def _integer(kind: str, number: int | float, wanted: str) -> int | bool:
    if isinstance(number, float):
        if not number.is_integer():
            raise ValueError(f"is {number}; it must be {wanted or _describe(kind)}")
        number = int(number)
    least, most = _INTEGERS[kind]
    if not least <= number <= most:
        raise ValueError(f"is {_shown(number)}, which does not fit {kind} ({least} to {most})")
    return bool(number) if kind == "bool" else int(number)


def _real(kind: str, number: int | float) -> float:
    try:
        (real,) = struct.unpack(_FORMATS[kind], struct.pack(_FORMATS[kind], float(number)))
    except OverflowError:
        raise ValueError(f"is {_shown(number)}, which does not fit {kind}") from None
    _check_rounding(kind, number, real)
    return float(real)


def _check_rounding(kind: str, number: int | float, real: float) -> None:
    if isinstance(number, int) and real != number:
        raise ValueError(f"is the integer {_shown(number)}, which {kind} cannot hold exactly; pass a float to round it")


def _bits_of_half(kind: str, number: int | float) -> int:
    if kind == "float16":
        return int.from_bytes(struct.pack("<e", _real(kind, number)), "little")
    if number != number:
        return 0x7FC0
    try:
        bits = struct.pack("<f", _rounded_to_bfloat16(float(number)))
    except OverflowError:
        raise ValueError(f"is {_shown(number)}, which does not fit bfloat16") from None
    _check_rounding(kind, number, struct.unpack("<f", bits)[0])
    return int.from_bytes(bits[2:], "little")


def _rounded_to_bfloat16(number: float) -> float:
    """Return the nearest number with the 8 significant bits of a bfloat16, whose smallest is 2**-133. Ties to even."""
    if math.isinf(number):
        return number
    last_bit = max(math.frexp(number)[1] - 8, -133)
    return math.copysign(math.ldexp(round(math.ldexp(number, -last_bit)), last_bit), number)


def _shown(number: int | float) -> str:
    """Return a number for a message. Python does not print integers of more than a few thousand digits."""
    if isinstance(number, int) and number.bit_length() > 1024:
        return f"an integer of {number.bit_length()} bits"
    return str(number)


def _check_not_traced(value: Any) -> None:
    if type(value) in (bool, float, int, str):
        return
    jax = imported_jax()
    if jax is not None and isinstance(value, jax.core.Tracer):
        raise TypeError(
            "is traced by JAX; attributes are constants of the compiled function. Pass a Python number, for "
            "instance through jax.jit(..., static_argnames=...), or make the parameter an array"
        )


def _describe(kind: str) -> str:
    if kind == "string":
        return "a str or bytes"
    if kind in _INTEGERS:
        return f"a whole number for {kind}"
    return f"a list, tuple or array of {kind.removesuffix('[]')}" if kind.endswith("[]") else f"a number for {kind}"


def _kind_of(value: Any) -> str:
    """Return the type of a value for a message."""
    return f"of type {type(value).__qualname__}"
