# SPDX-License-Identifier: Apache-2.0
"""Calls by JAX: building the ``jax.ffi.ffi_call`` for a call."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from kernix import _core
from kernix.calling.arrays import is_array, name_of_dtype
from kernix.calling.attributes import Attribute, to_jax
from kernix.calling.call import Call, ambiguous, check_spec
from kernix.jax.interop import (
    check_numpy_for_jax,
    imported_jax,
    is_tracing,
    make_spec,
    plain_kinds,
    platform_of,
    vary_alike,
)

_FfiCall = Callable[..., Sequence[Any]]
_MOST_KEPT = 256  # per function


class JaxCalls:
    """The calls of one function by JAX. Caches an ``ffi_call`` for each kind of call.

    Parameters
    ----------
    name : str
        The function's name, for messages.
    on_host : bool
        Whether the function runs on the CPU.
    target : callable
        Returns the function's name in JAX, and registers the function first if necessary.
    """

    def __init__(self, name: str, on_host: bool, target: Callable[[], str]) -> None:
        self._name = name
        self._on_host = on_host
        self._target = target
        self._kept: dict[Hashable, _FfiCall] = {}

    def run(
        self, call: Call, arguments: Sequence[Any], outputs: Sequence[Any] | None, values: dict[str, Attribute]
    ) -> Sequence[Any]:
        """Make a call. `outputs` is ``None`` if the only result is like the arguments."""
        key = _key(call, arguments, outputs)
        ffi_call = None if key is None else self._kept.get(key)
        if ffi_call is not None:
            return self._run_ffi_call(ffi_call, arguments, values)
        arguments = arrays_for_jax(self._name, arguments, outputs or ())
        outputs = self._infer_output(arguments) if outputs is None else outputs
        arguments = vary_alike(arguments, outputs)
        if not self._on_host:  # on the CPU, JAX would begin the call, and fail when its results are read
            self._check_platform(arguments)
        ffi_call = self._make_ffi_call(call, arguments, outputs)
        results = self._run_ffi_call(self._without_derivative(call, ffi_call), arguments, values)
        if key is not None:
            self._keep(key, ffi_call)  # not earlier: a call that JAX refuses may have an equal key
        return results

    def _run_ffi_call(
        self, ffi_call: _FfiCall, arguments: Sequence[Any], values: dict[str, Attribute]
    ) -> Sequence[Any]:
        try:
            return ffi_call(*arguments, **{name: to_jax(value) for name, value in values.items()})
        except RuntimeError:
            self._check_platform(arguments)
            raise

    def _without_derivative(self, call: Call, ffi_call: _FfiCall) -> _FfiCall:
        """Return `ffi_call`, which raises an error of kernix's own if it is differentiated."""
        if call.has_side_effect or not is_tracing():  # JAX does not let effects into functions with derivatives
            return ffi_call
        import jax

        def refuse(primals: Any, tangents: Any) -> Any:
            raise ValueError(
                f"{self._name}() cannot be differentiated: JAX cannot look into a kernel. Call the function that "
                f'.with_vjp("backward") returns, for jax.grad, or .with_jvp("tangents"), for jax.jvp'
            )

        def run(*arguments: Any, **attributes: Any) -> Sequence[Any]:
            function = jax.custom_jvp(lambda *arrays: ffi_call(*arrays, **attributes))
            function.defjvp(refuse)
            results: Sequence[Any] = function(*arguments)
            return results

        return run

    def _check_platform(self, arguments: Sequence[Any]) -> None:
        """Explain the failure of a call whose arrays are on another platform than the module."""
        platform = platform_of(arguments)
        if platform is None or (platform == "cpu") == self._on_host:
            return
        if _core.target_address(self._target(), "CUDA" if self._on_host else "cpu"):
            return  # the name has code on that platform, too
        code, place = ("C++", "CPU") if self._on_host else ("CUDA code", "GPU")
        where = "its arguments are" if arguments else "JAX's default device is"
        raise TypeError(
            f"{self._name}() is {code}, which runs on the {place}, but {where} on the {platform.upper()}: use "
            f"jax.device_put(x, jax.devices({place.lower()!r})[0]), or make the call under jax.default_device(...)"
        ) from None

    def _make_ffi_call(self, call: Call, arguments: Sequence[Any], outputs: Sequence[Any]) -> _FfiCall:
        import jax

        specs = tuple(self._spec(i, out, arguments) for i, out in enumerate(outputs))
        options: dict[str, Any] = {"vmap_method": call.vmap_method, "has_side_effect": call.has_side_effect}
        if call.input_output_aliases:
            options["input_output_aliases"] = call.input_output_aliases
        made: _FfiCall = jax.ffi.ffi_call(self._target(), specs, **options)
        return made

    def _keep(self, key: Hashable, ffi_call: _FfiCall) -> None:
        if len(self._kept) >= _MOST_KEPT:
            self._kept.clear()
        self._kept[key] = ffi_call

    def _infer_output(self, arguments: Sequence[Any]) -> list[Any]:
        import jax

        for i, argument in enumerate(arguments):
            if jax.numpy.issubdtype(argument.dtype, jax.dtypes.prng_key):
                raise TypeError(f"{self._name}(): argument {i} is a PRNG key: pass jax.random.key_data(key)")
        kinds = {(name_of_dtype_in_jax(argument.dtype), argument.shape): argument for argument in arguments}
        if len(kinds) != 1:
            raise ambiguous(self._name, [f"{dtype}{list(shape)}" for dtype, shape in kinds])
        like = arguments[0]
        described = jax.ShapeDtypeStruct(like.shape, jax.dtypes.canonicalize_dtype(like.dtype))
        return [next((argument for argument in arguments if isinstance(argument, jax.Array)), described)]

    def _spec(self, index: int, out: Any, arguments: Sequence[Any]) -> Any:
        if is_array(out) and not _describes(out):
            is_numpy = isinstance(out, sys.modules["numpy"].ndarray)
            kind = "a NumPy array" if is_numpy else f"of type {type(out).__qualname__}"
            raise TypeError(
                f"{self._name}(): out {index} is {kind}, which JAX cannot write into; describe the result with "
                "jax.ShapeDtypeStruct, or call the function without JAX arrays"
            )
        return make_spec(out, arguments)


def is_for_jax(arguments: Sequence[Any], outputs: Sequence[Any] | None, has_side_effect: bool) -> bool:
    """Return whether a call goes through JAX (see :class:`kernix.KernelFunction`)."""
    jax = imported_jax()
    if jax is None:
        return False
    for argument in arguments:
        if isinstance(argument, jax.Array):
            return True
    if has_side_effect and is_tracing():
        return True  # a direct call would run now, while JAX traces, and not with the compiled function
    numpy = sys.modules["numpy"]
    if not all(isinstance(argument, (numpy.ndarray, numpy.generic)) for argument in arguments):
        return False
    return any(isinstance(out, (jax.Array, jax.ShapeDtypeStruct)) for out in outputs or ())


def name_of_dtype_in_jax(dtype: Any) -> str:
    """Return the name of the element type that JAX makes of `dtype`: ``float32`` for float64 unless x64 is enabled."""
    import jax

    name = name_of_dtype(dtype)
    wide = name in ("float64", "complex128", "int64", "uint64")
    return jax.dtypes.canonicalize_dtype(name).name if wide else name


def x64_hint(takes: str, given: str) -> str:
    """Return the end of an error about an element type, if JAX may have narrowed the type that a kernel takes."""
    if takes == given or name_of_dtype_in_jax(takes) != given:
        return ""
    return f'. JAX makes {takes} {given} unless jax_enable_x64 is set: jax.config.update("jax_enable_x64", True)'


def arrays_for_jax(name: str, arguments: Sequence[Any], outputs: Sequence[Any]) -> Sequence[Any]:
    """Check that JAX accepts all arguments as arrays, and that `outputs` describe results. Return the arguments."""
    import jax

    for i, out in enumerate(outputs):
        check_spec(name, i, out)
    for i, argument in enumerate(arguments):
        if not isinstance(argument, jax.Array):
            try:
                check_numpy_for_jax(argument)
            except (TypeError, ValueError) as error:
                raise type(error)(f"{name}(): argument {i} {error}") from None
    return arguments


def _key(call: Call, arguments: Sequence[Any], outputs: Sequence[Any] | None) -> Hashable | None:
    """Return the cache key for the ``jax.ffi.ffi_call`` of this call, or ``None`` if it must not be cached."""
    kinds = plain_kinds(arguments if outputs is None else (*arguments, *outputs))
    if kinds is None:
        return None
    aliases = call.input_output_aliases and tuple(call.input_output_aliases.items())
    options = call.vmap_method, aliases, call.has_side_effect
    try:
        hash(options)
    except TypeError:  # JAX itself refuses such options
        return None
    return *kinds, len(arguments), outputs is None, options


def _describes(out: Any) -> bool:
    """Return whether an array only describes a result, because it cannot be written to."""
    import jax

    return isinstance(out, jax.Array) or getattr(getattr(out, "flags", None), "writeable", True) is False
