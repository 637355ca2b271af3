# SPDX-License-Identifier: Apache-2.0
"""A linear function whose transpose is given, which JAX itself offers only without batches and second derivatives."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["call_linear"]

#: Takes residuals, which may be anything, and the inputs in which it is linear. Returns arrays.
_Linear = Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]


def call_linear(function: _Linear, transposed: _Linear, residuals: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
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


def _avals(*avals: Any, **parameters: Any) -> list[Any]:
    import jax
    from jax.core import ShapedArray

    results = jax.eval_shape(functools.partial(_run, **parameters), *avals)
    return [ShapedArray(result.shape, result.dtype) for result in results]


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
    return [None] * count + call_linear(transposed, function, arguments[:count], given)


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
    results = call_linear(
        lambda residuals, inputs: over[0](tuple(residuals), tuple(inputs)),
        lambda residuals, inputs: over[1](tuple(residuals), tuple(inputs)),
        batched[:count],
        batched[count:],
    )
    return results, [0] * len(results)
