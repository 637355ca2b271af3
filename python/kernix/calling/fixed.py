# SPDX-License-Identifier: Apache-2.0
"""A call without JAX that is checked once and made many times, as a measurement needs it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernix import _core
from kernix.calling.arrays import CPU, CUDA
from kernix.calling.attributes import Attribute
from kernix.calling.direct import Handler, common_device, view_of
from kernix.jax.interop import imported_jax

__all__ = ["FixedCall"]


class FixedCall:
    """A call of a handler on fixed arrays. Each call of this object makes it, and nothing else.

    Parameters
    ----------
    handler : Handler
        What to call.
    arguments, results : sequence of arrays
        The arrays. Unlike in a user's call, a result may be a JAX array; it must be one that nobody else has.
    attributes : dict
        Converted attributes.
    stream : int or None
        A ``cudaStream_t``; None on the CPU.
    """

    __slots__ = ("_address", "_arguments", "_attributes", "_device", "_outs", "_results", "_stream", "_views")

    def __init__(
        self,
        handler: Handler,
        arguments: Sequence[Any],
        results: Sequence[Any],
        attributes: dict[str, Attribute],
        stream: int | None,
    ) -> None:
        platform = CUDA if handler.platform == CUDA else CPU
        self._views = [view_of(handler, f"argument {i}", array, platform, stream) for i, array in enumerate(arguments)]
        self._outs = [
            view_of(handler, f"result {i}", array, platform, stream, not _is_of_jax(array))
            for i, array in enumerate(results)
        ]
        self._address = handler.address
        self._arguments = [view.core() for view in self._views]
        self._results = [view.core() for view in self._outs]
        self._attributes = attributes
        self._stream = stream
        self._device = common_device(handler, self._views + self._outs)

    def __call__(self) -> None:
        """Make the call. On a GPU, it has only begun then."""
        _core.call_handler(self._address, self._arguments, self._results, self._attributes, self._stream, self._device)

    def memory(self) -> list[tuple[int, int]]:
        """Return address and bytes of each result."""
        return [(view.data, view.nbytes) for view in self._outs]


def _is_of_jax(array: Any) -> bool:
    jax = imported_jax()
    return jax is not None and isinstance(array, jax.Array)
