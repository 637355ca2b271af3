# SPDX-License-Identifier: Apache-2.0
"""A compiled function with compiled derivatives."""

from __future__ import annotations

import copy
import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kernix._errors import short_errors
from kernix.calling.by_jax import arrays_for_jax, is_for_jax
from kernix.calling.call import Call, Function
from kernix.calling.function import KernelFunction
from kernix.calling.launch import LAUNCH
from kernix.jax.interop import vary_alike


class DifferentiableFunction(Function):
    """A function that JAX can differentiate, made by :meth:`kernix.KernelFunction.with_vjp` and ``with_jvp``.

    It is called like the function itself; without JAX, it *is* that function. `vmap_method` also applies to the
    derivatives. With a backward function, it supports ``jax.grad`` and ``jax.vjp``; with tangents, ``jax.jvp`` and
    ``jax.jacfwd``; with both, all of them, also within each other as far as the derivatives have derivatives.
    """

    __module__ = "kernix"

    def __init__(self, forward: KernelFunction) -> None:
        self._forward = forward
        self._backward: KernelFunction | DifferentiableFunction | None = None
        self._tangents: KernelFunction | DifferentiableFunction | None = None
        self._argnums: tuple[int, ...] | None = None
        self._saves: dict[str, bool] = {}  # whether a derivative takes the results, too
        self._vmap_method = forward._vmap_method
        self.__name__ = forward.__name__
        self.__qualname__ = forward.__qualname__

    @short_errors
    def with_vjp(
        self,
        backward: str | Function,
        *,
        argnums: int | Sequence[int] | None = None,
        save_results: bool = False,
    ) -> DifferentiableFunction:
        """Return this function with a backward pass, too (see :meth:`kernix.KernelFunction.with_vjp`)."""
        function = copy.copy(self)
        function._backward = self._derivative("with_vjp", backward)
        function._saves = {**self._saves, "backward": save_results}
        function._argnums = self._normalised(argnums)
        function._check_backward(_kernel_of(function._backward))
        return function

    @short_errors
    def with_jvp(self, tangents: str | Function, *, save_results: bool = False) -> DifferentiableFunction:
        """Return this function with tangents, too (see :meth:`kernix.KernelFunction.with_jvp`)."""
        function = copy.copy(self)
        function._tangents = self._derivative("with_jvp", tangents)
        function._saves = {**self._saves, "tangents": save_results}
        self._check_attributes(_kernel_of(function._tangents))
        return function

    def _derivative(self, method: str, given: Any) -> KernelFunction | DifferentiableFunction:
        if isinstance(given, str):
            return KernelFunction(self._forward._code, given)
        if isinstance(given, (KernelFunction, DifferentiableFunction)):
            return given
        raise TypeError(
            f"{self.__qualname__}.{method}() takes the name of a function of the module, or a function of another one "
            f"such as module.backward, not {given!r}. For a derivative in Python, use jax.custom_{method[-3:]}"
        )

    def _run(self, call: Call) -> Any:
        def forward(*arrays: Any) -> Any:
            return self._forward._run(call._replace(arguments=arrays))

        self._forward._check_live_code()
        arguments = self._forward._check_arguments(call.arguments, call.attributes)
        outputs = None if call.out is None else _sequence(call.out)
        if not is_for_jax(arguments, outputs, call.has_side_effect):
            return forward(*arguments)
        self._check_call(arguments, call.attributes)
        differentiable = self._with_rules(forward, call)
        # Do this before JAX differentiates, so that JAX sums the whole gradient of a replicated argument.
        varied = vary_alike(arrays_for_jax(self.__qualname__, arguments, outputs or ()), outputs or ())
        try:
            return differentiable(*varied)
        except TypeError as error:
            if self._tangents is None and "to a custom_vjp function" in str(error):  # JAX does not say of which
                raise TypeError(self._lacks("tangents", "jax.jvp and jax.jacfwd", "with_jvp")) from None
            raise

    def _with_rules(self, forward: Callable[..., Any], call: Call) -> Any:
        import jax

        if self._tangents is None:
            with_backward = jax.custom_vjp(forward)

            @short_errors
            def backward(saved: Any, cotangents: Any) -> tuple[Any, ...]:
                return self._call_backward(saved, _of_floats(_sequence(cotangents)), call)

            # The forward rule may be differentiated, too.
            with_backward.defvjp(lambda *arrays: self._save(arrays, with_backward(*arrays)), backward)
            return with_backward

        @short_errors
        def differentiate(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
            results = function(*primals)
            changes = self._changes(primals, _sequence(results), _of_floats(tangents), call)
            return results, tuple(changes) if isinstance(results, (list, tuple)) else changes[0]

        function = jax.custom_jvp(forward)
        function.defjvp(differentiate)
        return function

    def _changes(
        self, arguments: Sequence[Any], results: Sequence[Any], tangents: Sequence[Any], call: Call
    ) -> list[Any]:
        """Return the tangents of the results."""
        import jax
        import numpy as np

        count = len(arguments)
        floats = [place for place, argument in enumerate(arguments) if _is_float(argument)]
        out = [jax.ShapeDtypeStruct(result.shape, result.dtype) for result in results if _is_float(result)]

        def along(residuals: Sequence[Any], inputs: Sequence[Any]) -> Sequence[Any]:
            saved = residuals[count:] if self._saves["tangents"] else ()
            return self._call_derivative(self._tangents, [*residuals[:count], *saved, *inputs], out, call)

        @short_errors
        def transposed(residuals: Sequence[Any], cotangents: Sequence[Any]) -> Sequence[Any]:
            if self._backward is None:
                raise ValueError(self._lacks("backward function", "jax.grad and jax.vjp", "with_vjp"))
            gradients = self._call_backward((residuals[:count], residuals[count:]), cotangents, call)
            zeros = [jax.numpy.zeros_like(residuals[place]) for place in floats]
            pairs = zip(floats, zeros, strict=True)
            return [zero if gradients[place] is None else gradients[place] for place, zero in pairs]

        residuals = [*arguments, *(results if any(self._saves.values()) else ())]
        along_floats = iter(_call_linear(along, transposed, residuals, tangents))
        return [
            next(along_floats) if _is_float(result) else np.zeros(result.shape, jax.dtypes.float0) for result in results
        ]

    def _save(self, arguments: Sequence[Any], results: Any) -> tuple[Any, Any]:
        return results, (arguments, _sequence(results) if self._saves["backward"] else ())

    def _call_backward(
        self, saved: tuple[Sequence[Any], Sequence[Any]], cotangents: Sequence[Any], call: Call
    ) -> tuple[Any, ...]:
        """Return a gradient for each argument, or ``None``."""
        arguments, results = saved
        argnums = range(len(arguments)) if self._argnums is None else self._argnums
        passed = [*arguments, *(results if self._saves["backward"] else ()), *cotangents]
        gradients = self._call_derivative(self._backward, passed, [arguments[place] for place in argnums], call)
        by_argument = dict(zip(argnums, gradients, strict=True))
        return tuple(by_argument.get(place) for place in range(len(arguments)))

    def _call_derivative(
        self,
        derivative: KernelFunction | DifferentiableFunction | None,
        arrays: Sequence[Any],
        out: Sequence[Any],
        call: Call,
    ) -> Sequence[Any]:
        assert derivative is not None
        names = self._passed_on(_kernel_of(derivative), call.attributes)
        attributes = {name: call.attributes[name] for name in names}
        results: Sequence[Any] = derivative(*arrays, out=out, vmap_method=call.vmap_method, attributes=attributes)
        return results

    def _lacks(self, derivative: str, users: str, method: str) -> str:
        """Return the message for a differentiation that needs the other `derivative`."""
        return (
            f'{self.__qualname__}() has no {derivative}, which {users} need: add .{method}("{derivative.split()[0]}")'
        )

    def _normalised(self, argnums: int | Sequence[int] | None) -> tuple[int, ...] | None:
        """Return `argnums` counted from the first argument. Each must exist and be named once."""
        if argnums is None:
            return None
        given = [operator.index(number) for number in (_sequence(argnums))]
        count = self._forward._signature.arguments
        normalised = tuple(
            number + count.least if number < 0 and count.least == count.most else number for number in given
        )
        most = count.most
        if any(number < 0 or (most is not None and number >= most) for number in normalised):
            raise ValueError(f"argnums={given} names an argument that {self._forward} does not have")
        if len(set(normalised)) != len(normalised):
            raise ValueError(f"argnums={given} names an argument of {self._forward} twice")
        return normalised

    def _shared(self, derivative: KernelFunction) -> list[str]:
        """Return the names of the attributes that both functions have."""
        return [name for name in derivative._signature.attributes if name in self._forward._signature.attributes]

    def _passed_on(self, derivative: KernelFunction, given: Mapping[str, Any]) -> list[str]:
        both = self._forward._is_global and derivative._is_global
        return self._shared(derivative) + [name for name in LAUNCH if both and name in given]

    def _check_call(self, arguments: Sequence[Any], attributes: Mapping[str, Any]) -> None:
        missing = [number for number in self._argnums or () if number >= len(arguments)]
        if missing:
            raise TypeError(
                f"{self.__qualname__}() is differentiated with respect to argument {missing[0]} (argnums), "
                f"but {len(arguments)} were given"
            )
        for derivative in [_kernel_of(each) for each in (self._backward, self._tangents) if each is not None]:
            left_out = [name for name in self._shared(derivative) if name not in attributes]
            if left_out:
                kind = self._forward._signature.attributes[left_out[0]]
                raise TypeError(
                    f"{self.__qualname__}() needs the attribute {left_out[0]}: {kind} by keyword: "
                    f"{derivative.__qualname__}() has it, too, and does not know the other's default argument. "
                    f"Pass the attribute, or call the function without its derivatives"
                )

    def _check_attributes(self, derivative: KernelFunction) -> None:
        """Refuse a derivative that needs attributes that this function cannot pass on."""
        if derivative._is_global and not self._forward._is_global:
            raise TypeError(
                f"{derivative} is a __global__ function, which needs a grid and a block, but {self._forward} has "
                "none to pass on: launch it from a host function"
            )
        signature = derivative._signature
        known = {*self._forward._signature.attributes, *signature.defaults}
        unknown = [name for name in signature.attributes if name not in known]
        if unknown:
            raise TypeError(f"{derivative} has the attribute {unknown[0]!r}, which {self._forward} does not have")
        signature.expected(derivative.__qualname__, dict.fromkeys(self._shared(derivative)))

    def _check_backward(self, backward: KernelFunction) -> None:
        """Refuse a backward function whose signature cannot belong to this function."""
        self._check_attributes(backward)
        number = len(self._argnums) if self._argnums is not None else self._forward._signature.arguments.most
        if number is not None and number not in backward._signature.results:
            raise TypeError(
                f"{backward} returns {backward._signature.results} results; as the backward function of "
                f"{self._forward} it must return {number}, one for each differentiated argument (see argnums)"
            )

    def __repr__(self) -> str:
        named = {"backward function": self._backward, "tangents": self._tangents}
        shown = [f"the {kind} {function.__name__}" for kind, function in named.items() if function is not None]
        return f"<kernix function {self._forward} with {' and '.join(shown)}>"


def _kernel_of(function: KernelFunction | DifferentiableFunction) -> KernelFunction:
    return function._forward if isinstance(function, DifferentiableFunction) else function


def _is_float(array: Any) -> bool:
    import jax.numpy as jnp

    return bool(jnp.issubdtype(array.dtype, jnp.inexact))


def _of_floats(tangents: Sequence[Any]) -> list[Any]:
    """Return the tangents, or cotangents, of arrays that have some: integers have none."""
    import jax

    return [tangent for tangent in tangents if tangent.dtype != jax.dtypes.float0]


def _sequence(results: Any) -> Sequence[Any]:
    return results if isinstance(results, (list, tuple)) else (results,)


# A linear function whose transpose is given, which JAX itself offers only without batches and second derivatives.

#: Takes residuals, which may be anything, and the inputs in which it is linear. Returns arrays.
_Linear = Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]


def _call_linear(function: _Linear, transposed: _Linear, residuals: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
    """Call a function that is linear in `inputs`.

    JAX transposes it to `transposed`, which takes the same residuals and a cotangent for each result, and returns one
    for each input. Where the residuals vary, JAX differentiates the two functions themselves.
    """
    results: list[Any] = _primitive().bind(
        *residuals, *inputs, function=function, transposed=transposed, count=len(residuals)
    )
    return results


@functools.cache
def _primitive() -> Any:
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir

    linear = Primitive("kernix_linear")
    linear.multiple_results = True
    linear.def_impl(_run)
    linear.def_abstract_eval(_avals)
    mlir.register_lowering(linear, mlir.lower_fun(_run, multiple_results=True))
    ad.primitive_jvps[linear] = _differentiate
    ad.primitive_transposes[linear] = _transpose
    batching.primitive_batchers[linear] = _batch
    return linear


def _run(*arguments: Any, function: _Linear, transposed: _Linear, count: int) -> list[Any]:
    return list(function(arguments[:count], arguments[count:]))


def _avals(*avals: Any, **parameters: Any) -> Any:
    """Return the types of the results, with the axes of a shard_map that they vary over."""
    import jax

    return jax.make_jaxpr(functools.partial(_run, **parameters))(*avals).out_avals


def _differentiate(primals: Sequence[Any], tangents: Sequence[Any], **parameters: Any) -> tuple[Any, Any]:
    import jax
    from jax.interpreters import ad

    count, function = parameters["count"], parameters["function"]
    residuals, inputs = primals[:count], primals[count:]
    results = _primitive().bind(*primals, **parameters)
    instantiated = [ad.instantiate_zeros(tangent) for tangent in tangents]
    along_inputs = _primitive().bind(*residuals, *instantiated[count:], **parameters)
    if all(type(tangent) is ad.Zero for tangent in tangents[:count]):
        return results, along_inputs
    _, along_residuals = jax.jvp(
        lambda *varied: list(function(varied, inputs)), tuple(residuals), tuple(instantiated[:count])
    )
    return results, [one + other for one, other in zip(along_inputs, along_residuals, strict=True)]


def _transpose(cotangents: Sequence[Any], *arguments: Any, function: Any, transposed: Any, count: int) -> list[Any]:
    from jax.interpreters import ad

    given = [ad.instantiate_zeros(cotangent) for cotangent in cotangents]
    return [None] * count + _call_linear(transposed, function, arguments[:count], given)


def _batch(
    arguments: Sequence[Any], axes: Sequence[int | None], *, function: _Linear, transposed: _Linear, count: int
) -> tuple[list[Any], list[int]]:
    import jax
    import jax.numpy as jnp

    size = next(one.shape[axis] for one, axis in zip(arguments, axes, strict=True) if axis is not None)
    moved = [one if axis is None else jnp.moveaxis(one, axis, 0) for one, axis in zip(arguments, axes, strict=True)]
    batched = [
        jnp.broadcast_to(one, (size, *one.shape)) if axis is None and place >= count else one
        for place, (one, axis) in enumerate(zip(moved, axes, strict=True))
    ]
    in_axes = tuple(None if axis is None else 0 for axis in axes[:count])
    over = [jax.vmap(each, in_axes=(in_axes, 0), axis_size=size) for each in (function, transposed)]
    results = _call_linear(
        lambda residuals, inputs: over[0](tuple(residuals), tuple(inputs)),
        lambda residuals, inputs: over[1](tuple(residuals), tuple(inputs)),
        batched[:count],
        batched[count:],
    )
    return results, [0] * len(results)
