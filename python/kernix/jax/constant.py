# SPDX-License-Identifier: Apache-2.0
"""Numbers and arrays in the form in which JAX receives them as attributes."""

from __future__ import annotations

from typing import Any

__all__ = ["Constant"]

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
