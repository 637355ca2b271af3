# SPDX-License-Identifier: Apache-2.0
"""A call without JAX: kernix calls the handler with a call frame of its own, on the arrays' memory."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from kernix import _core
from kernix.calling.arrays import CPU, CUDA, Library, View, dtype_name, is_array, is_on_gpu, library_of
from kernix.calling.attributes import Attribute
from kernix.calling.call import Spec, ambiguous, check_spec
from kernix.jax.interop import imported_jax


class Handler(NamedTuple):
    """The handler to call."""

    name: str  # for messages
    address: int
    platform: str  # as JAX names it


def call_directly(
    handler: Handler,
    arguments: Sequence[Any],
    outputs: Sequence[Any] | None,
    attributes: dict[str, Attribute],
    stream: Any,
) -> list[Any]:
    """Call a handler on arrays of NumPy, PyTorch, CuPy or another library with DLPack, and return its results.

    `outputs` has an element for each result: an array to write into, which then is the result, or an object with
    ``shape`` and ``dtype`` to make an array from. With ``None``, the result is one array like the arguments, which must
    be alike. `stream` is a CUDA stream; with ``None``, it is the current stream of the first array's library.
    """
    like = _first_array(handler, arguments, outputs)
    library = library_of(like)
    platform = CUDA if handler.platform == "CUDA" else CPU
    handle = _stream_handle(handler, library, like, stream) if platform == CUDA else None
    if platform == CPU and stream is not None:
        raise TypeError(f"{handler.name}() runs on the CPU and takes no stream")
    with library.device(like):
        views = [_view_of(handler, f"argument {i}", array, platform, handle) for i, array in enumerate(arguments)]
        specs = outputs if outputs is not None else [_like_arguments(handler, arguments, views)]
        with library.memory_for(like, handle):
            results = [
                spec if is_array(spec) else _make(handler, i, library, spec, like) for i, spec in enumerate(specs)
            ]
        outs = [_view_of(handler, f"result {i}", array, platform, handle, True) for i, array in enumerate(results)]
        _check_apart(handler, outs)
        FixedCall(handler, views, outs, attributes, handle)()
    return results


class FixedCall:
    """A call of a handler on fixed memory: checked once, made many times, as a measurement needs it."""

    __slots__ = ("_call", "_outs", "_views")

    def __init__(
        self,
        handler: Handler,
        views: Sequence[View],
        outs: Sequence[View],
        attributes: dict[str, Attribute],
        stream: int | None,
    ) -> None:
        self._views, self._outs = views, outs  # they keep the memory
        arguments, results = [view.core() for view in views], [view.core() for view in outs]
        self._call = handler.address, arguments, results, attributes, stream, _common_device(handler, [*views, *outs])

    def __call__(self) -> None:
        """Make the call. On a GPU, it has only begun then."""
        _core.call_handler(*self._call)

    def memory(self) -> list[tuple[int, int]]:
        """Return address and bytes of each result."""
        return [(view.data, view.nbytes) for view in self._outs]


def fix_call(
    handler: Handler,
    arguments: Sequence[Any],
    results: Sequence[Any],
    attributes: dict[str, Attribute],
    stream: int | None,
) -> FixedCall:
    """Return a call on these arrays.

    Unlike in a user's call, a result may be a JAX array; it must be one that nobody else has. `stream` is a
    ``cudaStream_t``; None on the CPU.
    """
    platform = CUDA if handler.platform == CUDA else CPU
    views = [_view_of(handler, f"argument {i}", array, platform, stream) for i, array in enumerate(arguments)]
    outs = [
        _view_of(handler, f"result {i}", array, platform, stream, not _is_of_jax(array))
        for i, array in enumerate(results)
    ]
    return FixedCall(handler, views, outs, attributes, stream)


def _first_array(handler: Handler, arguments: Sequence[Any], outputs: Sequence[Any] | None) -> Any:
    """Return the array that decides where a call runs: for CUDA, the first one in GPU memory, if there is one."""
    arrays = [array for array in (*arguments, *(outputs or ())) if is_array(array)]
    if arrays:
        own = (array for array in arrays if handler.platform == "CUDA" and is_on_gpu(array))
        return next(own, arrays[0])
    for i, argument in enumerate(arguments):
        raise TypeError(
            f"{handler.name}(): argument {i} is of type {type(argument).__qualname__}, which is not an array"
        )
    raise TypeError(f"{handler.name}() needs an array to know what memory to run on: pass arrays to write into as out=")


def _view_of(
    handler: Handler, place: str, array: Any, platform: str, stream: int | None, writable: bool = False
) -> View:
    """Return the memory of an array of a call. `place` says which array it is, for errors."""
    try:
        return library_of(array).view(array, platform, stream, writable=writable)
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, (AttributeError, TypeError)) else ValueError
        raise kind(f"{handler.name}(): {place} {error}") from error.__cause__


def _like_arguments(handler: Handler, arguments: Sequence[Any], views: Sequence[View]) -> Any:
    """Return the shape and dtype of the only result, which is like the arguments."""
    kinds = {(view.type, view.shape): None for view in views}
    if len(kinds) != 1:
        raise ambiguous(handler.name, [f"{dtype_name(number)}{list(shape)}" for number, shape in kinds])
    return Spec(views[0].shape, getattr(arguments[0], "dtype", None) or dtype_name(views[0].type))


def _make(handler: Handler, index: int, library: Library, spec: Any, like: Any) -> Any:
    check_spec(handler.name, index, spec)
    try:
        return library.empty(tuple(spec.shape), spec.dtype, like)
    except (TypeError, ValueError) as error:
        refusal = TypeError if isinstance(error, TypeError) else ValueError
        raise refusal(f"{handler.name}(): result {index}: {error}") from error.__cause__


def _stream_handle(handler: Handler, library: Library, like: Any, stream: Any) -> int:
    """Return the ``cudaStream_t`` of a user's stream object."""
    if stream is None:
        return library.stream(like)
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    for attribute in ("cuda_stream", "ptr"):  # PyTorch's, CuPy's
        stream = getattr(stream, attribute, stream)
    if isinstance(stream, bool) or not isinstance(stream, int):
        raise TypeError(f"{handler.name}(): stream is of type {type(stream).__qualname__}; it must be a CUDA stream")
    return stream


def _check_apart(handler: Handler, results: Sequence[View]) -> None:
    """Refuse results that share memory."""
    spans = sorted((view.data, view.data + view.nbytes, i) for i, view in enumerate(results) if view.nbytes)
    for (_, end, one), (begin, _, two) in pairwise(spans):
        if begin < end:
            names = " and ".join(map(str, sorted((one, two))))
            raise ValueError(f"{handler.name}(): results {names} share memory: pass a separate array for each")


def _common_device(handler: Handler, views: Sequence[View]) -> int | None:
    """Return the number of the GPU that has all arrays, or None."""
    devices = sorted({view.device for view in views if view.device is not None})
    if len(devices) > 1:
        raise ValueError(f"{handler.name}(): its arrays are on several devices: {', '.join(map(str, devices))}")
    return devices[0] if devices else None


def _is_of_jax(array: Any) -> bool:
    jax = imported_jax()
    return jax is not None and isinstance(array, jax.Array)
