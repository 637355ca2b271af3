# SPDX-License-Identifier: Apache-2.0
"""Numbers and arrays as JAX gets them for attributes."""

from __future__ import annotations

from typing import Any

__all__ = ["Constant"]

_LEAST_THAT_NO_INT64_HOLDS = 1 << 63


class Constant:
    """A value for an attribute of ``jax.ffi.ffi_call``, equal only to the same bits of the same type.

    JAX finds what it has compiled by the attributes of a call, and to Python 0.0 and -0.0 are equal, so are 1 and True,
    and a NaN is not even equal to itself.

    Parameters
    ----------
    kind : str
        Type of the attribute.
    value : NumPy number or array
        What JAX makes the attribute of.
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
        """Return what JAX makes the attribute of; it asks for that while it lowers a call."""
        if self._value.shape == () and self._value.dtype == "uint64" and self._value >= _LEAST_THAT_NO_INT64_HOLDS:
            from jaxlib.mlir import ir  # JAX itself goes through an int64_t

            return ir.Attribute.parse(f"{self._value} : ui64")
        return self._value

    def __repr__(self) -> str:
        return repr(self._value)
