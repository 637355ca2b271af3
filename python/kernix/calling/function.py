# SPDX-License-Identifier: Apache-2.0
"""The public class for a compiled function, which can be called with or without JAX."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from kernix import _core
from kernix._errors import KernelCallError, short_errors
from kernix.calling.arrays import is_array, name_of_dtype, plain_arrays
from kernix.calling.attributes import Attribute, convert_attributes
from kernix.calling.by_jax import JaxCalls, is_for_jax, name_of_dtype_in_jax, x64_hint
from kernix.calling.call import OPTIONS, Call, Function, check_spec, is_spec
from kernix.calling.direct import FixedCall, Handler, call_directly, fix_call
from kernix.calling.launch import LAUNCH, LAUNCH_DEFAULTS, launch_attributes, split_launch
from kernix.calling.signature import Signature, calls_of, read_signature
from kernix.jax.interop import ONLY_DESCRIBES, is_description
from kernix.jax.targets import Code, count_replacements

if TYPE_CHECKING:
    import inspect

    from kernix.calling.derivatives import DifferentiableFunction


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


class KernelFunction(Function):
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

    def __init__(self, code: Code, name: str) -> None:
        self._code = code
        info = code.info(name)
        self._signature = read_signature(info)
        self._fits_after = -1  # the number of replacements after which the live code had this signature
        self._is_global = info.is_global
        self._is_typed = bool(self._signature.argument_types or self._signature.result_types)
        self._target: str | None = None
        self._on_host = code.platform == "cpu"
        self._address = 0
        self.__name__ = name
        self.__qualname__ = f"{code.core.name}.{name}"
        self._jax_calls = JaxCalls(self.__qualname__, self._on_host, lambda: self.target)

    @property
    def target(self) -> str:
        """The name for ``jax.ffi.ffi_call``. Registers the function with JAX first if necessary."""
        if self._target is None:
            self._target = self._code.target(self.__name__)
        return self._target

    def _run(self, call: Call) -> Any:
        self._check_live_code()
        arguments = self._check_arguments(call.arguments, call.attributes)
        values = self._convert_attributes(call.attributes)
        outputs = self._check_outputs(call.out)
        results = self._call_on_plain_arrays(call, arguments, outputs, values)
        if results is None:
            results = self._call_on_arrays(call, arguments, outputs, values)
        return tuple(results) if isinstance(call.out, (list, tuple)) else results[0]

    def _convert_attributes(self, given: Mapping[str, Any]) -> dict[str, Attribute]:
        if self._is_global:
            launch, given = split_launch(given)
            return self._own_attributes(given) | launch_attributes(self.__qualname__, launch)
        for name in LAUNCH:
            if name in given and name not in self._signature.attributes:
                raise TypeError(
                    f"{self.__qualname__}() takes no {name}=: it is a host function, which launches kernels itself. "
                    "Only a __global__ function that is exported is launched as the call says"
                )
        return self._own_attributes(given)

    def _own_attributes(self, given: Mapping[str, Any]) -> dict[str, Attribute]:
        expected = self._signature.expected(self.__qualname__, given)
        return convert_attributes(self.__qualname__, expected, given, lambda: self._reason_of_name(given))

    def _reason_of_name(self, given: Mapping[str, Any]) -> str:
        """Return why a call may have a name that is not an attribute's."""
        known = {*self._signature.attributes, *(LAUNCH if self._is_global else ())}
        for name, value in given.items():
            is_passed = name in self._signature.argument_names or _has_elements(value)
            if is_passed and name not in known:
                is_result = name in self._result_names()
                return (
                    f": {name} is a result: pass it as out="
                    if is_result
                    else f": arrays go by position, not as {name}="
                )
        launch = ", ".join(f"{name}=" for name in LAUNCH)
        return f": the launch takes {launch}" if self._is_global and not known.issuperset(given) else ""

    def _result_names(self) -> list[str]:
        """Return the results' names in C++, empty for those without one."""
        parameters = self._code.info(self.__name__).parameters
        return [each.name for each in parameters if each.role == _core.Parameter.Role.RESULT]

    def __getitem__(self, launch: Any) -> NoReturn:
        raise TypeError(f"{self.__qualname__}[...]: {self._launch_by_keyword()}")

    def _launch_by_keyword(self) -> str:
        """Return what to tell those who launch as in Numba, CuPy or CUDA."""
        if not self._is_global:
            return "a host function launches kernels itself, so a call names no grid and block"
        attributes = [f"{name}=..." for name in self._signature.attributes]
        call = ", ".join([*self._signature.argument_names, *attributes, "grid=...", "block=..."])
        return f"grid and block go by keyword, as in {self.__qualname__}({call})"

    def _call_on_plain_arrays(
        self, call: Call, arguments: tuple[Any, ...], outputs: Sequence[Any] | None, values: dict[str, Attribute]
    ) -> Sequence[Any] | None:
        """Make a call on plain NumPy arrays, the most frequent kind, by the fast path; ``None`` for any other call."""
        if not self._on_host or call.has_side_effect or call.input_output_aliases or call.stream is not None:
            return None
        plain = plain_arrays()
        if plain is None:
            return None
        try:
            return plain.call(self._handler(), arguments, outputs, values)
        except KernelCallError as error:
            failure = self._named(error)
        self._check_types(arguments, outputs, in_jax=False)  # only now, because it costs more than the call
        raise failure

    def _call_on_arrays(
        self, call: Call, arguments: Sequence[Any], outputs: Sequence[Any] | None, values: dict[str, Attribute]
    ) -> Sequence[Any]:
        in_jax = is_for_jax(arguments, outputs, call.has_side_effect)
        self._check_types(arguments, outputs, in_jax)
        if in_jax:
            if call.stream is not None:
                raise TypeError(f"{self.__qualname__}(): stream= is for calls without JAX")
            return self._jax_calls.run(call, arguments, outputs, values)
        if call.input_output_aliases:
            raise TypeError(f"{self.__qualname__}(): input_output_aliases= is for JAX; pass the array itself as out=")
        handler = Handler(self.__qualname__, self._handler(), self._code.platform)
        try:
            return call_directly(handler, arguments, outputs, values, call.stream)
        except KernelCallError as error:
            failure = self._named(error)
        raise failure

    def _fixed_call(
        self, arguments: Sequence[Any], results: Sequence[Any], attributes: Mapping[str, Any], stream: int | None
    ) -> FixedCall:
        """Check a call without JAX, and return it, ready to be made many times."""
        self._check_live_code()
        arguments = self._check_arguments(tuple(arguments), attributes)
        values = self._convert_attributes(attributes)
        self._check_outputs(results)
        self._check_types(arguments, results, in_jax=False)
        handler = Handler(self.__qualname__, self._handler(), self._code.platform)
        return fix_call(handler, arguments, results, values, stream)

    def _named(self, error: KernelCallError) -> KernelCallError:
        """Add the module's name to an error of code that has no target; a target's trampoline passes it."""
        text = str(error)
        return KernelCallError(f"{self._code.core.name}.{text}") if text.startswith(f"{self.__name__}: ") else error

    def _check_live_code(self) -> None:
        """Refuse a call of code that has another signature than this function."""
        replacements = count_replacements()
        if replacements == self._fits_after:
            return
        if calls_of(self._code.live_info(self.__name__)) != calls_of(self._code.info(self.__name__)):
            raise TypeError(
                f"{self.__qualname__} has another signature since a later load: use the function of the module that "
                "that load returned. What jax.jit compiled before needs jax.clear_caches()"
            )
        self._fits_after = replacements

    def _check_arguments(self, args: tuple[Any, ...], given: Mapping[str, Any]) -> tuple[Any, ...]:
        """Check the number of arguments. An optional one at the end may be None."""
        if self._signature.order_tokens:
            raise TypeError(
                f"{self.__qualname__}() has tokens for the order of side effects, which only XLA can provide: use "
                f"jax.ffi.ffi_call with the function's .target"
            )
        if self._is_global and "grid" not in given and args and isinstance(args[0], (int, list, tuple)):
            raise TypeError(f"{self.__qualname__}(): {self._launch_by_keyword()}")
        count = self._signature.arguments
        while count.most is not None and count.least < len(args) <= count.most and args[-1] is None:
            args = args[:-1]
        if len(args) not in count:
            takes = f"{count} array{'s' * (count.least != 1 or count.most != 1)}"
            reason = self._reason_of_count(args, given)
            raise TypeError(f"{self.__qualname__}() takes {takes}, but {len(args)} were given{reason}; it is {self}")
        for i, argument in enumerate(args):
            if argument is None:
                raise TypeError(f"{self.__qualname__}(): argument {i} is None; it must be an array")
        return args

    def _reason_of_count(self, args: tuple[Any, ...], given: Mapping[str, Any]) -> str:
        """Return why a call may have the wrong number of arrays."""
        signature = self._signature
        if reason := self._reason_of_name(given):
            return reason
        most = signature.arguments.most
        if most is None or len(args) <= most:
            return ""
        if is_description(args[most]):
            return f": argument {most} {ONLY_DESCRIBES}"
        extra, left_out = args[most], [name for name in signature.attributes if name not in given]
        if left_out and not _has_elements(extra):
            shown = f"{left_out[0]}={extra!r}" if isinstance(extra, (int, float, str)) else f"{left_out[0]}=..."
            return f": attributes go by keyword, so pass {left_out[0]} by keyword: {shown}"
        results = [name or "one" for name in self._result_names()]
        kind = "pointers to const" if self._is_global else "a BE::In and a const BE::Tensor"
        verb = "is a result" if len(results) == 1 else "are results"
        return f": {' and '.join(results)} {verb}, which out= describes (inputs are {kind})"

    def _check_outputs(self, out: Any) -> Sequence[Any] | None:
        """Return `out` as a sequence, or None if the result must be inferred."""
        count = self._signature.results
        if out is None:
            if count.least != 1 or count.most != 1:
                results = f"{count} result{'s' * (count.least != 1 or count.most != 1)}"
                raise TypeError(f"{self.__qualname__}() has {results}: pass their shapes and dtypes as out=")
            return None
        outputs = out if isinstance(out, (list, tuple)) else (out,)
        if len(outputs) not in count:
            for index, spec in enumerate(outputs):
                if not is_array(spec) and not is_spec(spec):
                    check_spec(self.__qualname__, index, spec)
            results = f"{count} result{'s' * (count.least != 1 or count.most != 1)}"
            raise TypeError(f"{self.__qualname__}() has {results}, but out= names {len(outputs)}")
        return outputs

    def _check_types(self, arguments: Sequence[Any], outputs: Sequence[Any] | None, in_jax: bool) -> None:
        """Check the arrays of typed parameters. The handler checks them, too, for calls by other ways."""
        if not self._is_typed:
            return
        takes, gives = self._signature.argument_types, self._signature.result_types
        name_of = name_of_dtype_in_jax if in_jax else name_of_dtype
        hint = x64_hint if in_jax else _no_hint
        takes.check(self.__qualname__, "argument", arguments, name_of, hint)
        if outputs is None:
            gives.check(self.__qualname__, "result", arguments[:1], name_of, _hint_of_inferred_result)
        else:  # a described result keeps its type, also in JAX
            gives.check(self.__qualname__, "result", outputs, name_of_dtype, hint)

    def _handler(self) -> int:
        self._address = self._address or self._code.address(self.__name__)
        return self._address

    def __str__(self) -> str:
        return f"{self._code.core.name}.{self._shown_signature()}"

    def _shown_signature(self) -> str:
        """Return the name and the parameters, as ``print`` shows them, without the module's name."""
        defaults = {name: f"={default}" for name, default in LAUNCH_DEFAULTS.items()}
        launch = [name + defaults.get(name, "") for name in LAUNCH] if self._is_global else []
        return f"{self.__name__}({', '.join(self._signature.parameters(launch))})"

    def __repr__(self) -> str:
        return f"<kernix function {self}>"

    def _doc(self) -> str:
        comment = _comment_of(self.__name__, (self._code.core.source("") or b"").decode(errors="replace"))
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
        from kernix.calling.derivatives import DifferentiableFunction  # it imports this module

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
        from kernix.calling.derivatives import DifferentiableFunction

        return DifferentiableFunction(self).with_jvp(tangents, save_results=save_results)


def _comment_of(function: str, source: str) -> str:
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
    """Return the signature for ``inspect.signature`` and ``help``."""
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


def _has_elements(value: Any) -> bool:
    """Return whether a value is an array, rather than a single number."""
    return is_array(value) and getattr(value, "shape", ()) != ()


def _no_hint(takes: str, given: str) -> str:
    return ""


def _hint_of_inferred_result(takes: str, given: str) -> str:
    return ", as the argument: describe it with out="
