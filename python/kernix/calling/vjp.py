# SPDX-License-Identifier: Apache-2.0
"""A compiled function with a compiled backward pass."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

from kernix.calling.by_jax import arrays_for_jax, is_for_jax
from kernix.calling.call import Call, Function
from kernix.calling.kernel import Kernel
from kernix.calling.launch import LAUNCH
from kernix.jax.interop import vary_alike

__all__ = ["DifferentiableFunction"]


class DifferentiableFunction(Function):
    """A function that ``jax.grad`` can differentiate, made by :meth:`kernix.KernelFunction.with_vjp`.

    It is called like the forward function; without JAX, it *is* the forward function. `vmap_method` also applies to the
    backward function. It supports only reverse mode: JAX refuses ``jax.jvp`` and ``jax.jacfwd``.
    """

    __module__ = "kernix"

    def __init__(
        self, forward: Kernel, backward: Kernel, argnums: int | Sequence[int] | None, save_results: bool
    ) -> None:
        self._forward = forward
        self._backward = backward
        self._argnums = self._normalised(argnums)
        self._save_results = save_results
        self.__name__ = forward.__name__
        self.__qualname__ = forward.__qualname__
        self._check()

    def _run(self, call: Call) -> Any:
        def forward(*arrays: Any) -> Any:
            return self._forward._run(call._replace(arguments=arrays))

        self._forward._check_live_code()
        arguments = self._forward._check_arguments(call.arguments)
        outputs = None if call.out is None else _sequence(call.out)
        if not is_for_jax(arguments, outputs, call.has_side_effect):
            return forward(*arguments)
        self._check_call(arguments, call.attributes)
        import jax

        differentiable = jax.custom_vjp(forward)
        differentiable.defvjp(
            lambda *arrays: self._save(arrays, forward(*arrays)),
            lambda saved, cotangents: self._call_backward(saved, cotangents, call),
        )
        # Do this before JAX differentiates, so that JAX sums the whole gradient of a replicated argument.
        return differentiable(*vary_alike(arrays_for_jax(self.__qualname__, arguments), outputs or ()))

    def _save(self, args: Sequence[Any], results: Any) -> tuple[Any, Any]:
        return results, (args, _sequence(results) if self._save_results else ())

    def _call_backward(
        self,
        saved: tuple[Sequence[Any], Sequence[Any]],
        cotangents: Any,
        call: Call,
    ) -> tuple[Any, ...]:
        import jax

        args, results = saved
        argnums = range(len(args)) if self._argnums is None else self._argnums
        gradients = self._backward(
            *args,
            *results,
            *(cotangent for cotangent in _sequence(cotangents) if cotangent.dtype != jax.dtypes.float0),
            out=[args[i] for i in argnums],
            vmap_method=call.vmap_method,
            attributes={name: call.attributes[name] for name in self._passed_on(call.attributes)},
        )
        by_argument = dict(zip(argnums, gradients, strict=True))
        return tuple(by_argument.get(i) for i in range(len(args)))

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

    def _shared(self) -> list[str]:
        """Return the names of the attributes that both functions have."""
        return [name for name in self._backward._signature.attributes if name in self._forward._signature.attributes]

    def _passed_on(self, given: Mapping[str, Any]) -> list[str]:
        both = self._forward._is_global and self._backward._is_global
        return self._shared() + [name for name in LAUNCH if both and name in given]

    def _check_call(self, arguments: Sequence[Any], attributes: Mapping[str, Any]) -> None:
        missing = [number for number in self._argnums or () if number >= len(arguments)]
        if missing:
            raise TypeError(
                f"{self.__qualname__}() is differentiated with respect to argument {missing[0]} (argnums), "
                f"but {len(arguments)} were given"
            )
        left_out = [name for name in self._shared() if name not in attributes]
        if left_out:
            kind = self._forward._signature.attributes[left_out[0]]
            raise TypeError(
                f"{self.__qualname__}() needs the attribute {left_out[0]}: {kind} by keyword: "
                f"{self._backward.__qualname__}() has it, too, and does not know the other's default argument. "
                f"Pass the attribute, or call the function without its backward function"
            )

    def _check(self) -> None:
        """Refuse a backward function whose signature cannot belong to the forward function."""
        forward, backward = self._forward._signature, self._backward._signature
        if self._backward._is_global and not self._forward._is_global:
            raise TypeError(
                f"{self._backward} is a __global__ function, which needs a grid and a block, but {self._forward} has "
                "none to pass on: launch it from a host function"
            )
        unknown = [name for name in backward.attributes if name not in {*forward.attributes, *backward.defaults}]
        if unknown:
            raise TypeError(f"{self._backward} has the attribute {unknown[0]!r}, which {self._forward} does not have")
        backward.expected(self._backward.__qualname__, dict.fromkeys(self._shared()))
        number = len(self._argnums) if self._argnums is not None else forward.arguments.most
        if number is not None and number not in backward.results:
            raise TypeError(
                f"{self._backward} returns {backward.results} results; as the backward function of {self._forward} it "
                f"must return {number}, one for each differentiated argument (see argnums)"
            )

    def __repr__(self) -> str:
        return f"<kernix function {self._forward} with the backward function {self._backward.__name__}>"


def _sequence(results: Any) -> Sequence[Any]:
    return results if isinstance(results, (list, tuple)) else (results,)
