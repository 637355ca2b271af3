# SPDX-License-Identifier: Apache-2.0
"""The public class for a compiled function."""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kernix._errors import short_errors
from kernix.calling.call import OPTIONS, Function
from kernix.calling.derivatives import DifferentiableFunction
from kernix.calling.kernel import Kernel
from kernix.calling.launch import LAUNCH, LAUNCH_DEFAULTS
from kernix.calling.signature import Signature

if TYPE_CHECKING:
    import inspect

__all__ = ["KernelFunction"]


class _ShownDoc:
    """The class's documentation, and for each function its own signature and the comment above it in the source."""

    def __init__(self, of_class: str | None) -> None:
        self._of_class = of_class

    def __get__(self, function: KernelFunction | None, owner: type) -> str | None:
        return self._of_class if function is None else function._doc()


class _ShownSignature:
    """Provides ``inspect.signature`` for instances. The class itself behaves like any other class."""

    def __get__(self, function: KernelFunction | None, owner: type) -> inspect.Signature:
        if function is None:
            raise AttributeError("__signature__")
        return _inspect_signature(function._signature, function._is_global)


class KernelFunction(Kernel):
    """A function of a :class:`kernix.CompiledModule`, ready to be called.

    ``module.name`` and ``module["name"]`` return it. If an argument or `out` belongs to JAX (an array, a value that
    ``jax.jit`` traces, or a ``jax.ShapeDtypeStruct``), the call is a ``jax.ffi.ffi_call``. On arrays of NumPy, PyTorch,
    CuPy or another library with DLPack, kernix calls the function immediately, without JAX.

    If the module is registered with JAX, the function calls the code that is live under its target name, so a load with
    ``replace=True`` changes what the function does. With ``auto_register=False``, it always calls its module's code.

    Parameters
    ----------
    *args : arrays
        The inputs, in the order of the function's ``arg`` tokens.
    out : spec, array, or sequence of them, optional
        The results. For JAX: any object with ``shape`` and ``dtype``, such as ``jax.ShapeDtypeStruct``. For other
        libraries: arrays to write into, or specs to make arrays from. If `out` is a sequence, the call returns a tuple.
        `out` may be omitted if the function has one result and all its arguments are alike; the result is then like
        the arguments.
    vmap_method : str, optional
        How ``jax.vmap`` treats the call (see ``jax.ffi.ffi_call``); :meth:`with_vmap_method` sets it for all calls. Has
        no effect without JAX.
    input_output_aliases : dict, optional
        Inputs whose memory a result may reuse (see ``jax.ffi.ffi_call``). In a call without JAX, omit it and pass the
        array as `out`, too.
    has_side_effect : bool, default False
        Whether JAX must make the call even if its results are not used.
    stream : int or stream object, optional
        CUDA stream of a call without JAX. Default: the current stream of the first array's library.
    attributes : dict, optional
        Attributes by name. Use it for attributes that have the name of a parameter above.
    **attrs
        The other attributes: numbers, which must fit the declared type; lists, tuples or arrays of them; strings.
        A call may omit attributes that have default arguments in C++, from the last one backwards.
        A ``__global__`` function takes five more: `grid` and `block`, integers or tuples of up to three; optionally
        `shared`, bytes of dynamic shared memory, `cluster`, like `grid`, and `cooperative`, a bool. A struct takes
        bytes, a structured value of NumPy, or a ``ctypes.Structure``; a vector such as ``float3`` its numbers.

    Returns
    -------
    array or tuple of arrays
        Arrays of JAX, or of the first array's library.

    Raises
    ------
    TypeError
        If the number of arguments or results is wrong; if an attribute is missing, unknown or of the wrong kind; if an
        argument is not an array that this function accepts; or if a later load gave the name to a function with another
        signature.
    ValueError
        If an attribute does not fit its type, a grid, block or cluster has a size that CUDA does not allow, or the
        memory of an array cannot be used.
    KernelCallError
        If the function reports an error in a call without JAX. In a call by JAX, JAX raises ``JaxRuntimeError`` or
        ``ValueError``.
    """

    __module__ = "kernix"
    __doc__ = _ShownDoc(__doc__)
    __signature__ = _ShownSignature()

    def _doc(self) -> str:
        comment = comment_of(self.__name__, (self._code.core.source("") or b"").decode(errors="replace"))
        return f"{self}\n\n{comment}\n\nHow to call it: help(kernix.KernelFunction)".replace("\n\n\n\n", "\n\n")

    @short_errors
    def with_vjp(
        self, backward: str | Function, *, argnums: int | Sequence[int] | None = None, save_results: bool = False
    ) -> DifferentiableFunction:
        """Return this function with a backward pass, for ``jax.grad`` and ``jax.vjp``.

        Parameters
        ----------
        backward : str, KernelFunction or DifferentiableFunction
            A function of the same module by name, or any function. It receives the arguments of this function, then
            (with `save_results`) its results, then the cotangent of each floating-point or complex result. For each
            differentiated argument, it returns an array with the shape and dtype of that argument. Attributes that
            both functions have are passed on, those of a launch included.
        argnums : int or sequence of int, optional
            The arguments to differentiate. The others, such as indices, have no gradient. Default: all.
        save_results : bool, default False
            Whether `backward` takes the results of this function as well.

        Returns
        -------
        DifferentiableFunction
            Called in the same way as this function.
        """
        return DifferentiableFunction(self).with_vjp(backward, argnums=argnums, save_results=save_results)

    @short_errors
    def with_jvp(self, tangents: str | Function, *, save_results: bool = False) -> DifferentiableFunction:
        """Return this function with tangents, for ``jax.jvp`` and ``jax.jacfwd``.

        For ``jax.grad``, add a backward function with ``.with_vjp(...)``.

        Parameters
        ----------
        tangents : str, KernelFunction or DifferentiableFunction
            A function of the same module by name, or any function. It receives the arguments of this function, then
            (with `save_results`) its results, then the tangent of each floating-point or complex argument. It returns
            the tangent of each such result. Attributes are passed on as by :meth:`with_vjp`.
        save_results : bool, default False
            Whether `tangents` takes the results of this function as well.

        Returns
        -------
        DifferentiableFunction
            Called in the same way as this function.
        """
        return DifferentiableFunction(self).with_jvp(tangents, save_results=save_results)


def comment_of(function: str, source: str) -> str:
    """Return the comment above a function's ``// @BE`` line, or above its definition."""
    lines = source.splitlines()
    annotations = (i for i, line in enumerate(lines) if function == _exported_name(line))
    definitions = (i for i, line in enumerate(lines) if re.search(rf"\bvoid\s+{re.escape(function)}\s*\(", line))
    begin = next(annotations, None) or next(definitions, 0)
    end = begin
    while begin > 0 and re.match(r"\s*(//|/\*|\*)|.*\*/\s*$", lines[begin - 1]) and "@BE" not in lines[begin - 1]:
        begin -= 1
    return "\n".join(re.sub(r"^\s*(//+|/?\*+/?)\s?|\s*\*/\s*$", "", line) for line in lines[begin:end]).strip()


def _exported_name(line: str) -> str:
    found = re.match(r"\s*//\s*@BE\s+([^\s(]+)", line)
    return re.sub(r"\W+", "_", found[1]).strip("_") if found else ""


def _inspect_signature(signature: Signature, is_global: bool) -> inspect.Signature:
    """Return the signature that ``inspect.signature`` and ``help`` show."""
    import inspect  # imported here, because it takes a third of kernix' import time

    kinds = inspect.Parameter
    arrays = [
        kinds(name, kinds.POSITIONAL_ONLY, default=kinds.empty if place < signature.arguments.least else None)
        for place, name in enumerate(signature.argument_names)
    ]
    if signature.arguments.most is None:
        arrays.append(kinds("args", kinds.VAR_POSITIONAL))
    taken = {*OPTIONS, *(array.name for array in arrays)}
    attributes = [
        kinds(name, kinds.KEYWORD_ONLY, annotation=kind, default=... if name in signature.defaults else kinds.empty)
        for name, kind in signature.attributes.items()
        if name.isidentifier() and not keyword.iskeyword(name) and name not in taken
    ]
    if is_global:
        attributes += [
            kinds(name, kinds.KEYWORD_ONLY, default=LAUNCH_DEFAULTS.get(name, kinds.empty)) for name in LAUNCH
        ]
    options = [inspect.signature(Function.__call__).parameters[name] for name in OPTIONS]
    return inspect.Signature([*arrays, *attributes, *options], return_annotation="Any")
