# SPDX-License-Identifier: Apache-2.0
"""Translates kernix's errors to brainevent's exceptions and to the phrases that its users match."""

from __future__ import annotations

import re
from typing import NamedTuple

import kernix


class _Row(NamedTuple):
    pattern: str  # matches the first line of kernix' message; its groups name the parts that the phrase needs
    phrase: str
    exception: str = ""  # name of brainevent's exception, if the class of kernix' exception does not decide it
    instead: bool = False  # whether the phrase replaces the matched text; otherwise, it precedes the message


_FUNCTION = r"function '(?P<function>[^']*)'"
_TOKEN = "Invalid arg_spec token '{token}' for function '{function}'"
_NO_RET = "arg_spec for '{function}' must contain at least one 'ret' token"
_NVCC = "NvccNotFoundError"

#: The rows for each exception class of kernix. The first row whose pattern matches applies.
_ROWS: dict[type[kernix.KernelError], tuple[_Row, ...]] = {
    kernix.KernelRequestError: (
        _Row(rf"{_FUNCTION}: unknown token '(?P<token>[^']*)'", _TOKEN),
        _Row(
            rf"{_FUNCTION}: the token '(?P<token>[^']*)' names the attribute '(?P<name>[^']*)', which is not a C\+\+",
            f"{_TOKEN}: Invalid attribute name '{{name}}': must be a valid C++ identifier",
        ),
        _Row(rf"{_FUNCTION}: the token '(?P<token>[^']*)'", _TOKEN),
        _Row(
            r"the function name '(?P<function>[^']*)' is not a C\+\+ identifier",
            "Invalid function name '{function}': must be a valid C++ identifier",
        ),
        _Row(rf"{_FUNCTION}: duplicate 'stream'", "Duplicate 'stream' token in arg_spec for {function}"),
        _Row(  # with the position of a signature or an annotation
            rf"^.+:\d+: {_FUNCTION}: no 'ret'",
            "No Tensor parameters found in '{function}' that could be an output. Cannot auto-detect arg_spec. "
            f"No non-const Tensor output found in '{{function}}'; {_NO_RET}",
        ),
        _Row(rf"{_FUNCTION}: no 'ret'", _NO_RET),
        _Row(rf"{_FUNCTION}: (?:no signature 'void|nothing in )", "Cannot find 'void {function}(...)' in source"),
        _Row(
            rf"'(?P<name>[^']*)' of {_FUNCTION} is '(?P<type>[^']*?) ?(?P=name)', which inference cannot read",
            "Cannot map C++ type '{type}' of '{name}' in '{function}' to a BE attr type",
        ),
        _Row(
            rf"{_FUNCTION} \([^)]*\) has no parameter '(?P<name>[^']*)'",
            "Parameter '{name}' not found in signature of '{function}'",
        ),
        _Row(r"no '// @BE <function>' annotation", "No '// @BE <function_name>' annotations found in source"),
        _Row(rf"{_FUNCTION} is exported twice", "Duplicate @BE annotation for '{function}'"),
        _Row(r"functions is empty", "No functions found. Pass functions={{...}} or add '// @BE <name>' annotations"),
        _Row(
            r"no file in (?P<folder>.*) matches (?P<patterns>.*)",
            "No source files matching [{patterns}] found in {folder}",
        ),
        _Row(r'(?P<name>"[^"]*") is not a compute capability', "invalid compute capability: {name}"),
    ),
    kernix.KernelCompilationError: (
        _Row(r"^compile failed", "{language}compilation failed", instead=True),
        _Row(r"^(?P<step>.*link) failed", "{language}compilation failed at the {step}", instead=True),
        _Row(r"", "{language}compilation failed"),
    ),
    kernix.KernelToolchainError: (
        _Row(
            r"no GPU to compile for", "Could not detect a GPU compute capability (code=E-ARCH)", "GpuArchDetectionError"
        ),
        _Row(r"has no header", "CUDA header cuda_runtime.h was not found (code=E-HDR)", "HeaderNotFoundError"),
        _Row(
            r"does not support (GCC|Clang)",
            "host C++ compiler is incompatible with the current CUDA/nvcc",
            "HostCompilerIncompatibleError",
        ),
        _Row(r"does not report", "nvcc exists but its version could not be determined (code=E-NVCC)", _NVCC),
        _Row(r"needs CUDA", "CUDA compiler nvcc not found (code=E-NVCC)", _NVCC),
        _Row(
            r"cannot compile for", "the target GPU architecture is not supported by this nvcc", "UnsupportedArchError"
        ),
        _Row(r"C\+\+ compiler|\bCXX\b", "C++ compiler not found (code=E-CXX)", "HostCompilerNotFoundError"),
        _Row(r"cannot run (?P<path>\S*nvcc\S*):", "nvcc could not be executed: {path} (code=E-NVCC)", _NVCC),
        _Row(r"nvcc\S* does not work:", "nvcc exited with status (code=E-NVCC)", _NVCC),
        _Row(r"nvcc|CUDA toolkit", "CUDA compiler nvcc not found (code=E-NVCC)", _NVCC),
    ),
    kernix.KernelResourceError: (
        _Row(
            r"within (?P<time>\S+) s, this kernixd's job_timeout",
            "compilation timed out after {time}s",
            "CompilationError",
        ),
        _Row(r"kernixd's job_timeout", "compilation timed out", "CompilationError"),
        _Row(
            r"removed from the cache before it could be opened",
            "compiled artefact is missing (code=E-LOAD-MISSING)",
            "KernelLoadError",
        ),
    ),
    kernix.KernelLoadError: (
        _Row(r"does not open", "Failed to load shared library (code=E-LOAD)"),
        _Row(r"has no symbol (?P<symbol>\w+)", "Symbol '{symbol}' not found"),
    ),
    kernix.KernelRegistrationError: (
        _Row(
            r"target '(?P<target>[^']*)' is taken", "FFI target '{target}' is already registered to different content"
        ),
        _Row(r"target '(?P<target>[^']*)' cannot change", "Cannot replace FFI target '{target}'"),
    ),
}


def translate(error: kernix.KernelError, message: str, language: str) -> tuple[str, str]:
    """Return the name of brainevent's exception for an error with this text, and its message.

    `language` is ``"C++ "`` for a C++ load, which brainevent mentions in compiler errors; else ``""``.
    """
    kind = type(error)
    for row in _ROWS.get(kind, ()):
        found = re.search(row.pattern, message.partition("\n")[0])
        if found:
            phrase = row.phrase.format(language=language, **found.groupdict())
            rest = message[found.end() :] if row.instead else f": {message}"
            return row.exception or kind.__name__, phrase + rest
    return kind.__name__, message
