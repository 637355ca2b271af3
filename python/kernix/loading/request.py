# SPDX-License-Identifier: Apache-2.0
"""What a load asks for, checked and in one hashable form."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from kernix import _core, _environment
from kernix._errors import KernelRequestError

__all__ = [
    "Functions",
    "Request",
    "SourceText",
    "file_source",
    "file_sources",
    "function_list",
    "inline_sources",
    "module_name",
    "path_list",
    "stem",
    "string_list",
]

#: Functions as a user gives them: name to tokens, names alone, or none.
Functions = Mapping[str, Sequence[str]] | Sequence[str] | None

_Item = TypeVar("_Item")


class SourceText(NamedTuple):
    """One source text: `path` is empty unless it came from a file."""

    text: str | bytes
    path: str = ""


class Request(NamedTuple):
    """Everything that decides what is built. Two equal requests are the same load."""

    language: str  # "cpp" or "cuda"
    name: str
    sources: tuple[SourceText, ...]
    functions: tuple[tuple[str, tuple[str, ...]], ...] | None
    compile_flags: tuple[str, ...] = ()
    link_flags: tuple[str, ...] = ()
    include_paths: tuple[str, ...] = ()
    compute_capability: str = ""
    optimization_level: int = 3
    use_fast_math: bool = False
    allow_cuda_graph: bool = True
    separate: bool = False
    debug: bool = False
    keep: bool = False

    @property
    def platform(self) -> str:
        """The JAX platform that the functions are for."""
        return "CUDA" if self.language == "cuda" else "cpu"

    def core_language(self) -> _core.Language:
        """Return the language as libkernix names it."""
        return _core.Language.CUDA if self.language == "cuda" else _core.Language.CPP

    def core_sources(self) -> list[_core.Source]:
        """Return the sources for libkernix."""
        return [_core.Source(*source) for source in self.sources]

    def core_options(self) -> _core.LoadOptions:
        """Return the options for libkernix."""
        options = _core.LoadOptions()
        if self.functions is not None:
            options.functions = [_core.Function(name, tokens) for name, tokens in self.functions]
        options.compile_flags = self.compile_flags
        options.link_flags = self.link_flags
        options.include_paths = self.include_paths
        options.last_include_paths = _environment.jax_include_paths()
        options.compute_capability = self.compute_capability
        options.optimization_level = self.optimization_level
        options.use_fast_math = self.use_fast_math
        options.allow_cuda_graph = self.allow_cuda_graph
        options.separate = self.separate
        options.debug = self.debug
        options.keep = self.keep
        return options


def string_list(values: Sequence[str] | None, parameter: str) -> tuple[str, ...]:
    """Return `values` as a tuple. A lone string is refused: it would be taken letter by letter."""
    strings = _items(values, parameter, "strings")
    if not all(isinstance(value, str) for value in strings):
        raise TypeError(f"{parameter} must be a list of strings, not {values!r}")
    return strings


def path_list(values: Sequence[str | os.PathLike[str]] | None, parameter: str) -> tuple[str, ...]:
    """Return folders as absolute paths."""
    return tuple(os.path.abspath(os.fspath(value)) for value in _items(values, parameter, "folders"))


def _items(values: Iterable[_Item] | None, parameter: str, kind: str) -> tuple[_Item, ...]:
    if values is None:
        return ()
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"{parameter} must be a list of {kind}, not {values!r}")
    return tuple(values)


def function_list(functions: Functions) -> tuple[tuple[str, tuple[str, ...]], ...] | None:
    """Return functions as (name, tokens); no tokens means: infer them from the signature."""
    if functions is None:
        return None
    if isinstance(functions, (str, bytes)) or not isinstance(functions, Iterable):
        raise TypeError(f"functions must be a dict or a list of names, not {functions!r}")
    if not functions:
        raise KernelRequestError(
            "functions is empty: name the functions to export, or pass None and mark them in the source with "
            "`// @BE name` lines"
        )
    if isinstance(functions, Mapping):
        names = string_list(tuple(functions), "functions")
        return tuple((name, string_list(functions[name], f"functions[{name!r}]")) for name in names)
    return tuple((name, ()) for name in string_list(functions, "functions"))


def inline_sources(sources: str | Sequence[str], name: str, parameter: str) -> tuple[SourceText, ...]:
    """Return the texts of an inline load of module `name`."""
    _check_name(name)
    if isinstance(sources, str):
        return (SourceText(sources),)
    texts = string_list(sources, parameter)
    if not texts:
        raise KernelRequestError(f"{name}: {parameter} is empty: there is nothing to compile")
    return tuple(SourceText(text) for text in texts)


def file_sources(path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> tuple[SourceText, ...]:
    """Return the texts of one file or of several."""
    if isinstance(path, (str, bytes, os.PathLike)):
        return (file_source(path),)
    paths = _items(path, "path", "files")
    if not paths:
        raise KernelRequestError("the list of files is empty: there is nothing to compile")
    return tuple(file_source(one) for one in paths)


def file_source(path: str | os.PathLike[str]) -> SourceText:
    """Return the text of a file. Bytes: a comment in another encoding than UTF-8 is no reason to refuse one."""
    with open(path, "rb") as file:
        return SourceText(file.read(), os.path.abspath(path))


def stem(sources: tuple[SourceText, ...]) -> str:
    """Return the name of the first file without its suffix."""
    return os.path.splitext(os.path.basename(sources[0].path))[0]


def module_name(name: str | None, default: str) -> str:
    """Return the name of a module that comes from files: the one that the user gave, or else `default`."""
    return default if name is None else _check_name(name)


def _check_name(name: str) -> str:
    if not isinstance(name, str) or not name:
        raise KernelRequestError(f"name must be a string that is not empty, not {name!r}")
    return name
