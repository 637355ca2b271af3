# SPDX-License-Identifier: Apache-2.0
"""A compiled function that can be called with or without JAX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kernix import _core
from kernix._errors import KernelCallError
from kernix.calling.arrays import is_array, name_of_dtype, plain_arrays
from kernix.calling.attributes import Attribute, convert_attributes
from kernix.calling.by_jax import JaxCalls, is_for_jax, name_of_dtype_in_jax, x64_hint
from kernix.calling.call import Call, Function, check_spec, is_spec
from kernix.calling.direct import Handler, call_directly
from kernix.calling.launch import LAUNCH, LAUNCH_DEFAULTS, launch_attributes, split_launch
from kernix.calling.signature import calls_of, read_signature
from kernix.jax.targets import Code, count_replacements

__all__ = ["Kernel"]


class Kernel(Function):
    """A function of a module. It checks a call and makes it.

    Parameters
    ----------
    code : Code
        The module's code.
    name : str
        Name of a function of the module. Raises ``KeyError`` if there is none.
    """

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

    def _of_module(self, name: str) -> Kernel:
        """Return another function of the module."""
        return type(self)(self._code, name)

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
        return convert_attributes(self.__qualname__, expected, given)

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
        by_name = next((name for name in given if name in signature.argument_names), None)
        if by_name is not None:
            return f": arrays go by position, not as {by_name}="
        most = signature.arguments.most
        if most is None or len(args) <= most:
            return ""
        extra, left_out = args[most], [name for name in signature.attributes if name not in given]
        if left_out and not (is_array(extra) and getattr(extra, "shape", ()) != ()):
            shown = f"{left_out[0]}={extra!r}" if isinstance(extra, (int, float, str)) else f"{left_out[0]}=..."
            return f": attributes go by keyword, so pass {left_out[0]} by keyword: {shown}"
        parameters = self._code.info(self.__name__).parameters
        results = [each.name or "one" for each in parameters if each.role == _core.Parameter.Role.RESULT]
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
        return f"{self._code.core.name}.{self.shown_signature()}"

    def shown_signature(self) -> str:
        """Return the name and the parameters, as ``print`` shows them, without the module's name."""
        defaults = {name: f"={default}" for name, default in LAUNCH_DEFAULTS.items()}
        launch = [name + defaults.get(name, "") for name in LAUNCH] if self._is_global else []
        return f"{self.__name__}({', '.join(self._signature.parameters(launch))})"

    def __repr__(self) -> str:
        return f"<kernix function {self}>"


def _no_hint(takes: str, given: str) -> str:
    return ""


def _hint_of_inferred_result(takes: str, given: str) -> str:
    return ", as the argument: describe it with out="
