# SPDX-License-Identifier: Apache-2.0
"""What a tuning is asked for, checked: the source, a text or files, with its loads; and all that a search needs."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from kernix._errors import KernelRequestError
from kernix.loading.load import PreparedLoad, prepare
from kernix.loading.module import CompiledModule
from kernix.loading.request import file_sources, is_cuda_file, stem
from kernix.tuning.check import Check
from kernix.tuning.space import Settings, Space

SourceOrFiles = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

_OF_VARIANTS_ONLY = ("force_rebuild",)
_OF_WINNER_ONLY = ("auto_register", "build_directory", "replace", "target_prefix")


class Source:
    """What every variant compiles.

    Parameters
    ----------
    source : str, path-like, or a list of them
        A text, which has a line break, or files.
    language : {"cuda", "cpp"} or None
        None: what the text, or the file's suffix, says.
    name : str or None
        The modules' name.
    options : dict
        Other parameters of a load.

    Attributes
    ----------
    is_cuda : bool
    name : str
    options : dict
    """

    def __init__(
        self,
        source: SourceOrFiles,
        language: Literal["cuda", "cpp"] | None,
        name: str | None,
        options: Mapping[str, Any],
    ) -> None:
        if language not in ("cuda", "cpp", None):
            raise KernelRequestError(f'language must be "cuda" or "cpp", not {language!r}')
        self._value = source
        self._is_text = isinstance(source, str) and "\n" in source
        if self._is_text:
            self.texts = [str(source).encode(errors="surrogateescape")]
            self.is_cuda = language == "cuda" if language else _looks_like_cuda(str(source))
            self.name = name or "tuned"
        else:
            files = file_sources(source)
            self.texts = [text for text, _ in files]
            self.is_cuda = language == "cuda" if language else any(map(is_cuda_file, files))
            self.name = name or stem(files)
        self.options = _checked_options(options)

    def load_of_variant(self, macros: Mapping[str, Any]) -> PreparedLoad:
        """Return a variant's load, one of many. It registers nothing."""
        prepared = self._prepare(macros, auto_register=False, leave_out=_OF_WINNER_ONLY)
        prepared.request.batch = True
        prepared.request.in_history = False
        return prepared

    def load_of_winner(self, macros: Mapping[str, Any]) -> PreparedLoad:
        """Return the load of the variant that has won."""
        return self._prepare(macros, auto_register="target_prefix" in self.options, leave_out=_OF_VARIANTS_ONLY)

    def _prepare(self, macros: Mapping[str, Any], *, auto_register: bool, leave_out: Sequence[str]) -> PreparedLoad:
        options = {name: value for name, value in self.options.items() if name not in leave_out}
        defines = {**(options.pop("defines", None) or {}), **macros}
        what = "path" if not self._is_text else "cuda_sources" if self.is_cuda else "cpp_sources"
        parameters = {
            what: self._value,
            "name": self.name,
            "defines": defines,
            "auto_register": auto_register,
            **options,
        }
        return prepare(what, self.is_cuda, parameters)


class Plan(NamedTuple):
    """What to search, and how."""

    source: Source
    space: Space
    variants: Sequence[Settings]
    attributes: Sequence[dict[str, Any]]  # of the call of each variant
    function: str | None
    check: Check
    allow_spills: bool
    repeats: int
    at_once: int


def only_function(module: CompiledModule, function: str | None) -> str:
    """Return the function to tune: the given one, or the only one of the module."""
    if function is not None:
        module._code.check(function)
        return function
    if len(module.function_names) != 1:
        raise KernelRequestError(f"say which function= to tune: {module.name} has {', '.join(module.function_names)}")
    return module.function_names[0]


def _looks_like_cuda(text: str) -> bool:
    return re.search(r"__global__|<<<|\bcudaStream_t\b", text) is not None


def _checked_options(options: Mapping[str, Any]) -> dict[str, Any]:
    if "wait" in options:
        raise TypeError("autotune() has no wait=: it times kernels in this thread")
    defines = options.get("defines")
    if defines is not None and not isinstance(defines, Mapping):
        raise TypeError(f"defines must be a dict of names and values, not {defines!r}")
    return dict(options)
