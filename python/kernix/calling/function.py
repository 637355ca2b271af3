# SPDX-License-Identifier: Apache-2.0
"""A compiled function as its user sees it."""

from __future__ import annotations

import keyword
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kernix.calling.call import OPTIONS, Function
from kernix.calling.kernel import Kernel
from kernix.calling.signature import Signature
from kernix.calling.vjp import DifferentiableFunction

if TYPE_CHECKING:
    import inspect

__all__ = ["KernelFunction"]


class _ShownSignature:
    """What ``inspect.signature`` of a function finds; its class is a class as any other."""

    def __get__(self, function: KernelFunction | None, owner: type) -> inspect.Signature:
        if function is None:
            raise AttributeError("__signature__")
        return _inspect_signature(function._signature)


class KernelFunction(Kernel):
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

    def with_vjp(
        self, backward: str | Kernel, *, argnums: int | Sequence[int] | None = None, save_results: bool = False
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
        other = KernelFunction(self._code, backward) if isinstance(backward, str) else backward
        return DifferentiableFunction(self, other, argnums, save_results)


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
