# SPDX-License-Identifier: Apache-2.0
"""The arrays of a search: arguments of all calls, new results for each variant, and the clock where they are."""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
import pathlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from kernix._errors import KernelRequestError
from kernix.calling.arrays import CUDA, is_array, is_on_gpu, library_of, name_of_dtype
from kernix.calling.call import Spec, ambiguous, check_spec
from kernix.calling.direct import FixedCall
from kernix.calling.function import KernelFunction
from kernix.jax.interop import imported_jax, is_tracing
from kernix.tuning import driver

_MOST_COPIES = 32  # of the arrays of a call
_UNSET = 0xFF  # in all bytes of a new result: NaN, -1
_CACHES = pathlib.Path("/sys/devices/system/cpu/cpu0/cache")
_USUAL_CACHE_BYTES = 32 << 20
_MOST_CACHE_BYTES = 64 << 20  # a cache for many processors; one fills no more of it while it calls a kernel

#: Returns the seconds that a number of calls took together.
Clock = Callable[[Callable[[], None], int], float]


class Arrays:
    """The arrays that a search calls its variants with.

    JAX arrays on the CPU are read by way of NumPy, and so are their results NumPy arrays. Calls do not go through JAX,
    so no variant is registered there.

    Parameters
    ----------
    platform : str
        ``"cpu"`` or ``"CUDA"``.
    arguments : sequence
        The user's arguments.
    out : object
        The user's ``out``.
    rotate : bool
        Whether each timed call is on other copies of the arrays than the last, so that it finds no content in a cache.

    Attributes
    ----------
    out : Spec, tuple of Spec, or None
        The results, as the user's ``out`` describes them.
    """

    def __init__(self, platform: str, arguments: Sequence[Any], out: Any, *, rotate: bool = True) -> None:
        if isinstance(arguments, (str, bytes)) or is_array(arguments) or not isinstance(arguments, Sequence):
            raise TypeError("args must be a list of the arrays that the function is called with")
        if is_tracing():
            raise KernelRequestError("autotune() runs kernels: call it outside of jax.jit, and its .function inside")
        for number, argument in enumerate(arguments):
            if not is_array(argument):
                raise TypeError(
                    f"args[{number}] is of type {type(argument).__name__}, not an array; what calls take by keyword "
                    "goes into attributes="
                )
        self._on_gpu = platform == CUDA
        self.arguments = [self._own(argument) for argument in arguments]
        self._is_single = not isinstance(out, (list, tuple))
        specs = [_spec(i, one) for i, one in enumerate([out] if self._is_single else out)] if out is not None else None
        self.out = None if specs is None else specs[0] if self._is_single else tuple(specs)
        self._specs = specs
        self.rotate = rotate
        self._copies: list[tuple[list[Any], list[Any]]] = []  # arguments and results, for calls after one another

    def signature(self) -> list[str]:
        """Return element type and shape of all arguments, and of the results that are described."""
        return [*map(_shown, self.arguments), "->", *map(_shown, self._specs or ())]

    @property
    def device(self) -> int:
        """The number of the GPU that has the arguments; 0 if none has."""
        own = (array for array in self.arguments if is_on_gpu(array))
        return int(array.__dlpack_device__()[1]) if (array := next(own, None)) is not None else 0

    def new_results(self, function: str) -> list[Any]:
        """Make arrays for the results, with content that no kernel has written."""
        specs = self._specs or [self._like_arguments(function)]
        return [self._empty(spec) for spec in specs]

    def call_of(self, function: KernelFunction, attributes: dict[str, Any], results: list[Any]) -> FixedCall:
        """Return a call that writes into `results`, whose content is overwritten now."""
        call = function._fixed_call(self.arguments, results, attributes, self._stream())
        for (address, count), array in zip(call.memory(), results, strict=True):
            self._fill(address, count, 1 if name_of_dtype(array.dtype) == "bool" else _UNSET)
        self.wait()
        return call

    def results_of(self, function: KernelFunction, attributes: dict[str, Any], clock: Clock) -> Any:
        """Call a function once, and return its results as a call returns them."""
        results = self.new_results(function.__qualname__)
        clock(self.call_of(function, attributes, results), 1)
        return self.shown(results)

    def calls_to_time(self, function: KernelFunction, attributes: dict[str, Any]) -> Callable[[], None]:
        """Return what calls the function each time on the next copy of the arrays."""
        if not self._copies:
            self._copies = self._make_copies(function.__qualname__)
        calls = [
            function._fixed_call(arguments, results, attributes, self._stream()) for arguments, results in self._copies
        ]
        following = itertools.cycle(calls)
        return lambda: next(following)()

    def shown(self, results: list[Any]) -> Any:
        """Return results as a call returns them."""
        return results[0] if self._is_single else tuple(results)

    def wait(self) -> None:
        """Wait until all calls have ended."""
        if self._on_gpu:
            driver.wait_for_gpu()

    @contextmanager
    def clock(self) -> Iterator[Clock]:
        """Give what measures calls on these arrays."""
        if not self._on_gpu:
            yield _wall_clock
            return
        with driver.in_context_of(self.device), driver.events_of(self._stream() or 0) as clock:
            yield clock

    def _make_copies(self, function: str) -> list[tuple[list[Any], list[Any]]]:
        """Return the arrays and as many copies as are more together than the last cache holds, within bounds."""
        results = self.new_results(function)
        size = sum(int(array.nbytes) for array in [*self.arguments, *results])
        count = 1
        if self.rotate and all(hasattr(array, "copy") or hasattr(array, "clone") for array in self.arguments):
            cache = driver.cache_bytes(self.device) if self._on_gpu else _processor_cache_bytes()
            count = max(1, min(_MOST_COPIES, math.ceil(2 * cache / max(size, 1))))
        copies = [(self.arguments, results)]
        for _ in range(count - 1):
            copies.append(([_copy_of(array) for array in self.arguments], self.new_results(function)))
        if not self._on_gpu:  # or the first calls would wait for the system's pages
            for array in itertools.chain(*(own for _, own in copies)):
                array[...] = 0
        self.wait()
        return copies

    def _own(self, argument: Any) -> Any:
        """Return an argument in the form that calls take."""
        jax = imported_jax()
        if jax is None:
            return argument
        import numpy as np

        if self._on_gpu and isinstance(argument, (np.ndarray, np.generic)):
            argument = jax.device_put(argument)
        if isinstance(argument, jax.Array):
            argument = argument.block_until_ready()
            return argument if self._on_gpu else np.asarray(argument)
        return argument

    def _like_arguments(self, function: str) -> Spec:
        kinds = {(name_of_dtype(array.dtype), tuple(array.shape)) for array in self.arguments}
        if len(kinds) != 1:
            raise ambiguous(function, [f"{dtype}{list(shape)}" for dtype, shape in sorted(kinds)])
        return Spec(tuple(self.arguments[0].shape), self.arguments[0].dtype)

    def _empty(self, spec: Spec) -> Any:
        like = next((array for array in self.arguments if not self._on_gpu or is_on_gpu(array)), None)
        jax = imported_jax()
        if self._on_gpu and jax is not None and (like is None or isinstance(like, jax.Array)):
            with jax.default_device(None if like is None else next(iter(like.devices()))):
                return jax.numpy.empty(spec.shape, spec.dtype).block_until_ready()
        if like is None:
            import numpy as np

            like = np.empty(0)
        return library_of(like).empty(spec.shape, spec.dtype, like)

    def _stream(self) -> int | None:
        if not self._on_gpu:
            return None
        like = next((array for array in self.arguments if is_on_gpu(array)), None)
        return 0 if like is None else library_of(like).stream(like)

    def _fill(self, address: int, count: int, byte: int) -> None:
        if not count:
            return
        if self._on_gpu:
            driver.fill_memory(address, count, byte)
        else:
            ctypes.memset(address, byte, count)


def _shown(described: Any) -> str:
    """Return ``"float32[3, 4]"``."""
    return f"{name_of_dtype(described.dtype)}{list(described.shape)}"


def _copy_of(array: Any) -> Any:
    return array.clone() if hasattr(array, "clone") else array.copy()


def _spec(index: int, out: Any) -> Spec:
    check_spec("autotune", index, out)
    return Spec(tuple(int(size) for size in out.shape), out.dtype)


def _wall_clock(call: Callable[[], None], count: int) -> float:
    begin = time.perf_counter()
    for _ in range(count):
        call()
    return time.perf_counter() - begin


@functools.cache
def _processor_cache_bytes() -> int:
    """Return the size of the processor's largest cache, or a usual one if the system does not tell."""
    try:
        sizes = [int(file.read_text().strip().removesuffix("K")) << 10 for file in _CACHES.glob("index*/size")]
    except (OSError, ValueError):
        sizes = []
    return min(max(sizes, default=_USUAL_CACHE_BYTES), _MOST_CACHE_BYTES)
