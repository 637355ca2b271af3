# SPDX-License-Identifier: Apache-2.0
"""A compiled function as a Python callable."""

from __future__ import annotations

import keyword
import sys
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

from kernix import _core
from kernix._arrays import is_array, plain_arrays
from kernix._attributes import Attribute, convert_attributes, to_jax
from kernix._call import OPTIONS, Call, Function
from kernix._direct import Target, ambiguous, call_directly
from kernix._jax import check_numpy_for_jax, imported_jax, is_tracing, make_spec, plain_kinds, platform_of, vary_alike
from kernix._signature import Signature, read_signature
from kernix._vjp import DifferentiableFunction

if TYPE_CHECKING:
    import inspect

    from kernix._module import CompiledModule

__all__ = ["KernelFunction"]


_FfiCall = Callable[..., Sequence[Any]]
_MOST_KEPT = 256  # of a function


class _ShownSignature:
    """What ``inspect.signature`` of a function finds; its class is a class as any other."""

    def __get__(self, function: KernelFunction | None, owner: type) -> inspect.Signature:
        if function is None:
            raise AttributeError("__signature__")
        return _inspect_signature(function._signature)


class KernelFunction(Function):
    """A function of a :class:`kernix.CompiledModule`, ready to be called.

    ``module.name`` or ``module["name"]`` gives it. In JAX's hands (an argument or `out` is JAX's: an array, something
    that ``jax.jit`` traces, a ``jax.ShapeDtypeStruct``) a call is a ``jax.ffi.ffi_call``. On arrays of NumPy, PyTorch,
    CuPy or another library with DLPack the function is called at once, without JAX.

    Where its module was registered with JAX, it is what is live under the function's target name: a load with
    ``replace=True`` changes what it does. With ``auto_register=False`` it stays what the module was compiled from.

    Parameters
    ----------
    *args : arrays
        The inputs, in the order of the function's ``arg`` tokens.
    out : spec, array, or sequence of them, optional
        The results. To JAX: anything with ``shape`` and ``dtype``, such as ``jax.ShapeDtypeStruct``. To other
        libraries: arrays to write into, or specs to make arrays from. A sequence makes the call return a tuple. May be
        left out of a function with one result, which is then like its arguments, where these are alike.
    vmap_method : str, optional
        How ``jax.vmap`` treats the call: see ``jax.ffi.ffi_call``. Without JAX it means nothing.
    input_output_aliases : dict, optional
        Inputs whose memory a result may have: see ``jax.ffi.ffi_call``. Without JAX pass the array as `out` as well.
    has_side_effect : bool, default False
        Whether JAX must make the call even if nobody uses its results.
    stream : int or stream object, optional
        CUDA stream of a call without JAX. Default: the current stream of the first array's library.
    attributes : dict, optional
        Attributes by name; for those whose name is one of the parameters above.
    **attrs
        The other attributes: numbers, which must fit the declared type; lists, tuples or arrays of them; strings.
        Those with default arguments in C++ may be left out, the last of them first.

    Returns
    -------
    array or tuple of arrays
        Of JAX, or of the first array's library.

    Raises
    ------
    TypeError
        When the number of arguments or results is wrong, an attribute is missing, unknown or of another kind, or an
        argument is no array for this function.
    ValueError
        When an attribute does not fit its type, or the memory of an array cannot be used.
    KernelCallError
        When the function reports an error in a call without JAX. In JAX's hands that is a ``JaxRuntimeError``.
    """

    __module__ = "kernix"
    __signature__ = _ShownSignature()

    def __init__(self, module: CompiledModule, name: str) -> None:
        self._module = module
        self._signature = read_signature(module.arg_spec(name))
        self._target: str | None = None
        self._on_host = module.platform == "cpu"
        self._address = 0
        self._kept: dict[Hashable, _FfiCall] = {}
        self.__name__ = name
        self.__qualname__ = f"{module.name}.{name}"

    @property
    def target(self) -> str:
        """Name to give to ``jax.ffi.ffi_call``; registers the function with JAX first where that was not done."""
        if self._target is None:
            self._target = self._module._register(self.__name__)
        return self._target

    def _run(self, call: Call) -> Any:
        arguments = self._check_arguments(call.arguments)
        expected = self._signature.expected(self.__qualname__, call.attributes)
        values = convert_attributes(self.__qualname__, expected, call.attributes)
        outputs = self._check_outputs(call.out)
        results = self._call_on_plain_arrays(call, arguments, outputs, values)
        if results is None:
            results = self._call_on_arrays(call, arguments, outputs, values)
        return tuple(results) if isinstance(call.out, (list, tuple)) else results[0]

    def _call_on_plain_arrays(
        self, call: Call, arguments: tuple[Any, ...], outputs: Sequence[Any] | None, values: dict[str, Attribute]
    ) -> Sequence[Any] | None:
        """Make the call if it is one on NumPy arrays as they mostly are, which can be told in no time."""
        if not self._on_host or call.has_side_effect or call.input_output_aliases or call.stream is not None:
            return None
        plain = plain_arrays()
        return None if plain is None else plain.call(self._handler(), arguments, outputs, values)

    def _call_on_arrays(
        self, call: Call, arguments: Sequence[Any], outputs: Sequence[Any] | None, values: dict[str, Attribute]
    ) -> Sequence[Any]:
        if self._is_for_jax(arguments, outputs, call.has_side_effect):
            if call.stream is not None:
                raise TypeError(f"{self.__qualname__}(): stream= is for calls without JAX")
            return self._call_by_jax(call, arguments, outputs, values)
        if call.input_output_aliases:
            raise TypeError(f"{self.__qualname__}(): input_output_aliases= is for JAX; pass the array itself as out=")
        target = Target(self.__qualname__, self._handler(), self._module.platform)
        return call_directly(target, arguments, outputs, values, call.stream)

    def with_vjp(
        self, backward: str | KernelFunction, *, argnums: int | Sequence[int] | None = None, save_results: bool = False
    ) -> DifferentiableFunction:
        """Return this function with a backward pass, for ``jax.grad`` and ``jax.vjp``.

        Parameters
        ----------
        backward : str or KernelFunction
            Name of a function of the same module, or any function. It is called with the arguments of this one, then
            (with `save_results`) its results, then the cotangent of each result that is floating or complex. It gives,
            for each differentiated argument, an array of that argument's shape and dtype. Attributes of the call that
            it has, too, are passed on.
        argnums : int or sequence of int, optional
            Which arguments are differentiated; the others, such as indices, have no gradient. Default: all.
        save_results : bool, default False
            Whether `backward` takes the results of this function as well.

        Returns
        -------
        DifferentiableFunction
            To be called as this function is.
        """
        other = self._module[backward] if isinstance(backward, str) else backward
        return DifferentiableFunction(self, other, argnums, save_results)

    def _check_arguments(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Check the number of arguments; an optional one at the end may be None."""
        if self._signature.order_tokens:
            raise TypeError(
                f"{self.__qualname__}() has tokens for the order of side effects, which only XLA can give: use "
                f"jax.ffi.ffi_call with the function's .target"
            )
        count = self._signature.arguments
        while count.most is not None and count.least < len(args) <= count.most and args[-1] is None:
            args = args[:-1]
        if len(args) not in count:
            takes = f"{count} array{'s' * (count.least != 1 or count.most != 1)}"
            raise TypeError(f"{self.__qualname__}() takes {takes}, but {len(args)} were given; it is {self}")
        for i, argument in enumerate(args):
            if argument is None:
                raise TypeError(f"{self.__qualname__}(): argument {i} is None; it must be an array")
        return args

    def _check_outputs(self, out: Any) -> Sequence[Any] | None:
        """Return `out` as a sequence, or None where the result has to be inferred."""
        count = self._signature.results
        if out is None:
            if count.least != 1 or count.most != 1:
                results = f"{count} result{'s' * (count.least != 1 or count.most != 1)}"
                raise TypeError(f"{self.__qualname__}() has {results}: say their shapes and dtypes with out=")
            return None
        outputs = out if isinstance(out, (list, tuple)) else (out,)
        if len(outputs) not in count:
            raise TypeError(f"{self.__qualname__}() has {count} results, but out= names {len(outputs)}")
        return outputs

    def _is_for_jax(self, arguments: Sequence[Any], outputs: Sequence[Any] | None, has_side_effect: bool) -> bool:
        """Return whether a call is JAX's: see the class."""
        jax = imported_jax()
        if jax is None:
            return False
        for argument in arguments:
            if isinstance(argument, jax.Array):
                return True
        if has_side_effect and is_tracing():
            return True  # at once it would happen while JAX traces, and not when the compiled function runs
        numpy = sys.modules["numpy"]
        if not all(isinstance(argument, (numpy.ndarray, numpy.generic)) for argument in arguments):
            return False
        return any(isinstance(out, (jax.Array, jax.ShapeDtypeStruct)) for out in outputs or ())

    def _call_by_jax(
        self, call: Call, arguments: Sequence[Any], outputs: Sequence[Any] | None, values: dict[str, Attribute]
    ) -> Sequence[Any]:
        key = _key(call, arguments, outputs)
        ffi_call = None if key is None else self._kept.get(key)
        if ffi_call is not None:
            return self._run_ffi_call(ffi_call, arguments, values)
        arguments = self._arrays_for_jax(arguments)
        outputs = self._infer_output(arguments) if outputs is None else outputs
        arguments = vary_alike(arguments, outputs)
        ffi_call = self._make_ffi_call(call, arguments, outputs)
        results = self._run_ffi_call(ffi_call, arguments, values)
        if key is not None:
            self._keep(key, ffi_call)  # only now: what JAX refuses may be equal to what it takes
        return results

    def _run_ffi_call(
        self, ffi_call: _FfiCall, arguments: Sequence[Any], values: dict[str, Attribute]
    ) -> Sequence[Any]:
        try:
            return ffi_call(*arguments, **{name: to_jax(value) for name, value in values.items()})
        except RuntimeError as error:
            self._check_platform(arguments, error)
            raise

    def _check_platform(self, arguments: Sequence[Any], error: Exception) -> None:
        """Say what is wrong with a call that failed where it is one on another platform than the module's."""
        platform = platform_of(arguments)
        if platform is None or (platform == "cpu") == self._on_host:
            return
        code, place = ("C++", "CPU") if self._on_host else ("CUDA code", "GPU")
        where = "its arguments are" if arguments else "JAX's default device is"
        raise TypeError(
            f"{self.__qualname__}() is {code}, which runs on the {place}, and {where} on the {platform.upper()}: use "
            f"jax.device_put(x, jax.devices({place.lower()!r})[0]), or make the call under jax.default_device(...)"
        ) from error

    def _make_ffi_call(self, call: Call, arguments: Sequence[Any], outputs: Sequence[Any]) -> _FfiCall:
        import jax

        specs = tuple(self._spec(i, out, arguments) for i, out in enumerate(outputs))
        options: dict[str, Any] = {"vmap_method": call.vmap_method, "has_side_effect": call.has_side_effect}
        if call.input_output_aliases:
            options["input_output_aliases"] = call.input_output_aliases
        made: _FfiCall = jax.ffi.ffi_call(self.target, specs, **options)
        return made

    def _keep(self, key: Hashable, ffi_call: _FfiCall) -> None:
        if len(self._kept) >= _MOST_KEPT:
            self._kept.clear()
        self._kept[key] = ffi_call

    def _arrays_for_jax(self, arguments: Sequence[Any]) -> Sequence[Any]:
        """Check that all arguments are arrays to JAX, and return them."""
        import jax

        for i, argument in enumerate(arguments):
            if not isinstance(argument, jax.Array):
                try:
                    check_numpy_for_jax(argument)
                except (TypeError, ValueError) as error:
                    raise type(error)(f"{self.__qualname__}(): argument {i} {error}") from None
        return arguments

    def _infer_output(self, arguments: Sequence[Any]) -> list[Any]:
        import jax

        kinds = {(argument.dtype, argument.shape): argument for argument in arguments}
        if len(kinds) != 1:
            raise ambiguous(self.__qualname__, [f"{dtype.name}{list(shape)}" for dtype, shape in kinds])
        like = arguments[0]
        described = jax.ShapeDtypeStruct(like.shape, like.dtype)
        return [next((argument for argument in arguments if isinstance(argument, jax.Array)), described)]

    def _spec(self, index: int, out: Any, arguments: Sequence[Any]) -> Any:
        if not (hasattr(out, "shape") and hasattr(out, "dtype")):
            kind = type(out).__qualname__
            raise TypeError(f"{self.__qualname__}(): out {index} is of type {kind}; it must have shape and dtype")
        if is_array(out) and not _describes(out):
            is_numpy = isinstance(out, sys.modules["numpy"].ndarray)
            kind = "a NumPy array" if is_numpy else f"of type {type(out).__qualname__}"
            raise TypeError(
                f"{self.__qualname__}(): out {index} is {kind}, which JAX cannot write into; describe the result with "
                "jax.ShapeDtypeStruct, or call the function on arrays that are not JAX's"
            )
        return make_spec(out, arguments)

    def _handler(self) -> int:
        """Return the address to call: what is live under the function's name, or else the module's own code."""
        if not self._address:
            name = self._module._target(self.__name__)
            live = _core.target_address(name, self._module.platform) if name else 0
            self._address = live or self._module._core.address(self.__name__)
        return self._address

    def __str__(self) -> str:
        return f"{self.__qualname__}({', '.join(self._signature.parameters())})"

    def __repr__(self) -> str:
        return f"<kernix function {self}>"


def _key(call: Call, arguments: Sequence[Any], outputs: Sequence[Any] | None) -> Hashable | None:
    """Return what a ``jax.ffi.ffi_call`` that serves this call is kept under; ``None`` where none may be kept."""
    kinds = plain_kinds(arguments if outputs is None else (*arguments, *outputs))
    if kinds is None:
        return None
    aliases = call.input_output_aliases and tuple(call.input_output_aliases.items())
    options = call.vmap_method, aliases, call.has_side_effect
    try:
        hash(options)
    except TypeError:  # no options that JAX takes, which it says itself
        return None
    return *kinds, len(arguments), outputs is None, options


def _describes(out: Any) -> bool:
    """Return whether an array can only mean what a result of JAX is like, because nothing can be written into it."""
    import jax

    return isinstance(out, jax.Array) or getattr(getattr(out, "flags", None), "writeable", True) is False


def _inspect_signature(signature: Signature) -> inspect.Signature:
    """Return what ``inspect.signature`` and ``help`` show."""
    import inspect  # here, because it takes a third of our import

    kinds = inspect.Parameter
    arrays = [kinds(f"arg{i}", kinds.POSITIONAL_ONLY) for i in range(signature.arguments.least)]
    optional = range(signature.arguments.least, signature.arguments.most or 0)
    arrays += [kinds(f"arg{i}", kinds.POSITIONAL_ONLY, default=None) for i in optional]
    if signature.arguments.most is None:
        arrays.append(kinds("args", kinds.VAR_POSITIONAL))
    taken = {*OPTIONS, *(array.name for array in arrays)}
    attributes = [
        kinds(name, kinds.KEYWORD_ONLY, annotation=kind, default=... if name in signature.defaults else kinds.empty)
        for name, kind in signature.attributes.items()
        if name.isidentifier() and not keyword.iskeyword(name) and name not in taken
    ]
    options = [inspect.signature(Function.__call__).parameters[name] for name in OPTIONS]
    return inspect.Signature([*arrays, *attributes, *options], return_annotation="Any")
