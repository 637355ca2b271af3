# SPDX-License-Identifier: Apache-2.0
"""The call interface of a module's function: the parameters besides its arrays and attributes."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kernix._errors import shortened

if TYPE_CHECKING:
    from typing_extensions import Self

#: Names of the call's own parameters, so attributes with these names cannot be passed by keyword.
OPTIONS = ("out", "vmap_method", "input_output_aliases", "has_side_effect", "stream", "attributes")


class Call(NamedTuple):
    """All parameters of a user's call."""

    arguments: tuple[Any, ...]
    out: Any
    vmap_method: str | None
    input_output_aliases: Mapping[int, int] | None
    has_side_effect: bool
    stream: Any
    attributes: Mapping[str, Any]


class Function(ABC):
    """A callable with the interface that :class:`kernix.KernelFunction` describes."""

    __qualname__: str
    _vmap_method: str | None = None  # of calls that say none

    def __call__(
        self,
        /,
        *args: Any,
        out: Any = None,
        vmap_method: str | None = None,
        input_output_aliases: Mapping[int, int] | None = None,
        has_side_effect: bool = False,
        stream: Any = None,
        attributes: Mapping[str, Any] | None = None,
        **attrs: Any,
    ) -> Any:
        """Call the function (see :class:`kernix.KernelFunction`)."""
        try:
            if attributes is not None:
                attrs = self._merge(attributes, attrs)
            aliases = self._read_aliases(input_output_aliases) if input_output_aliases else None
            return self._run(
                Call(args, out, vmap_method or self._vmap_method, aliases, bool(has_side_effect), stream, attrs)
            )
        except (Exception, KeyboardInterrupt) as error:
            raise shortened(error)  # noqa: B904 (it is the same error)

    def with_vmap_method(self, vmap_method: str) -> Self:
        """Return this function with a default `vmap_method` for all calls.

        Parameters
        ----------
        vmap_method : str
            As in a call (see ``jax.ffi.ffi_call``).
        """
        function = copy.copy(self)
        function._vmap_method = vmap_method
        return function

    @abstractmethod
    def _run(self, call: Call) -> Any:
        """Carry out `call`."""

    def _read_aliases(self, aliases: Any) -> dict[int, int]:
        """Return a dict made from any value that ``dict`` accepts, as ``jax.ffi.ffi_call`` does."""
        try:
            return dict(aliases)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"{self.__qualname__}(): input_output_aliases is of type {type(aliases).__qualname__}; it must be a "
                f"dict from the number of an argument to that of a result ({error})"
            ) from None

    def _merge(self, attributes: Mapping[str, Any], attrs: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(attributes, Mapping):
            raise TypeError(
                f"{self.__qualname__}(): attributes must be a dict of names and values, not {_shown(attributes)}; "
                "an attribute with the name 'attributes' goes into it, too"
            )
        twice = sorted(set(attributes) & set(attrs))
        if twice:
            raise TypeError(f"{self.__qualname__}(): attribute {twice[0]!r} is given twice")
        return {**attributes, **attrs}


class Spec:
    """Shape and element type of a result. Not a tuple, which as ``out`` would be several results."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.shape = shape
        self.dtype = dtype


def is_spec(out: Any) -> bool:
    """Return whether a value says shape and element type. ``np.float32`` has only descriptors of these names."""
    return hasattr(getattr(out, "shape", None), "__len__") and hasattr(out, "dtype")


def check_spec(name: str, index: int, out: Any) -> None:
    """Refuse a description of result number `index` that has no shape and element type, or no possible shape."""
    if not is_spec(out):
        raise TypeError(
            f"{name}(): out {index} is {_shown(out)}; it must have shape and dtype. out= describes the result, "
            'such as jax.ShapeDtypeStruct((3, 4), "float32"), or an array; for several results, a tuple of them'
        )
    if any(isinstance(size, int) and size < 0 for size in out.shape):
        raise ValueError(f"{name}(): out {index} has the shape {tuple(out.shape)}; no size of a result is negative")


def _shown(value: Any) -> str:
    plain = isinstance(value, (int, float, str, type))
    return f"{value!r}" if plain else f"of type {type(value).__qualname__}"


def ambiguous(name: str, kinds: Sequence[str]) -> TypeError:
    """Make the error for a result whose shape or element type is unknown."""
    reason = f"the arguments are not alike ({', '.join(kinds)})" if kinds else "it has no array arguments"
    return TypeError(f"{name}() needs out=, the shape and dtype of its result: {reason}")
