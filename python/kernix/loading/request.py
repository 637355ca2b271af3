# SPDX-License-Identifier: Apache-2.0
"""The parts of a load's request, checked and in the form that libkernix takes."""

from __future__ import annotations

import contextlib
import math
import operator
import os
import re
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from typing import SupportsIndex, TypeVar

from kernix._errors import KernelRequestError

#: Values of macros by name. A str is C++ text, a bool is 1 or 0, and None is the compilers' default, 1.
Defines = Mapping[str, SupportsIndex | float | str | None] | None

#: Functions in the user's form: names mapped to tokens, names alone, or None.
Functions = Mapping[str, Sequence[str]] | Sequence[str] | None

#: A source's text and, unless it is of no file, its path.
Source = tuple[bytes, bytes]

#: The path of a source, which is no C++ text.
_PATH = re.compile(r"[\w./~-]+\.(c|cc|cpp|cxx|cu|cuh|h|hh|hpp)")

_Item = TypeVar("_Item")


def check_text(what: str, text: str) -> str:
    """Return `text`. Refuse one that UTF-8 cannot encode, such as a name that ``os.fsdecode`` made of other bytes."""
    if not isinstance(text, str):
        raise TypeError(f"{what} must be a string, not {text!r}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise KernelRequestError(_without_encoding(what, text, error)) from None
    return text


def encoded(what: str, text: str) -> bytes:
    """Return what the compiler reads: the bytes that ``surrogateescape`` has put into a text are themselves again."""
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError as error:
        raise KernelRequestError(_without_encoding(what, text, error)) from None


def _without_encoding(what: str, text: str, error: UnicodeEncodeError) -> str:
    line, shown = text.count("\n", 0, error.start) + 1, text[max(0, error.start - 20) : error.start + 20]
    place = f"in line {line}" if "\n" in text else f"at {error.start}"
    return f"{what} has the character {text[error.start]!r} {place}, which UTF-8 cannot encode: {shown!r}"


def string_list(values: Sequence[str] | None, parameter: str) -> tuple[str, ...]:
    """Return `values` as a tuple. Refuse a single string, which would be read letter by letter."""
    return tuple(check_text(parameter, string) for string in _strings(values, parameter))


def _strings(values: Sequence[str] | None, parameter: str) -> tuple[str, ...]:
    strings = _items(values, parameter, "strings")
    if not all(isinstance(value, str) for value in strings):
        raise TypeError(f"{parameter} must be a list of strings, not {reprlib.repr(values)}")
    return strings


def path_list(values: Sequence[str | os.PathLike[str]] | None, parameter: str) -> tuple[str, ...]:
    """Return folders as absolute paths."""
    return tuple(os.path.abspath(folder_path(value, parameter)) for value in _items(values, parameter, "folders"))


def bundle_paths(bundle: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[bytes]:
    """Return the absolute paths of one bundle, or of several."""
    bundles = [bundle] if isinstance(bundle, (str, os.PathLike)) else bundle
    return [os.fsencode(path) for path in path_list(bundles, "bundle")]


def folder_path(value: str | os.PathLike[str], parameter: str) -> str:
    """Return the path of a folder. Refuse anything but a path."""
    try:
        return os.fsdecode(value)
    except TypeError:
        raise TypeError(f"{parameter}: {value!r} is not the path of a folder") from None


def _items(values: Iterable[_Item] | None, parameter: str, kind: str) -> tuple[_Item, ...]:
    if values is None:
        return ()
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise TypeError(f"{parameter} must be a list of {kind}, not {reprlib.repr(values)}")
    return tuple(values)


def function_list(functions: Functions) -> tuple[tuple[str, tuple[str, ...]], ...] | None:
    """Return functions as (name, tokens). Empty tokens mean: infer them from the signature."""
    if functions is None:
        return None
    if isinstance(functions, (str, bytes)) or not isinstance(functions, Iterable):
        raise TypeError(f"functions must be a dict or a list of names, not {functions!r}")
    if isinstance(functions, Mapping):
        names = string_list(tuple(functions), "functions")
        return tuple((name, string_list(functions[name], f"functions[{name!r}]")) for name in names)
    return tuple((name, ()) for name in string_list(functions, "functions"))


def inline_sources(sources: str | Sequence[str], name: str, parameter: str) -> list[Source]:
    """Return the texts of an inline load of module `name`."""
    _check_name(name)
    texts = (sources,) if isinstance(sources, str) else _strings(sources, parameter)
    for text in texts:
        line = text.strip()
        if _PATH.fullmatch(line) or ("\n" not in line and line and os.path.isfile(line)):
            raise KernelRequestError(
                f"the source is the path {line!r}: load_cpp_file() and load_cuda_file() compile files; after the "
                "module's name, an inline load takes the text itself"
            )
    return [(encoded("the source", text), b"") for text in texts]


def file_sources(path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Source]:
    """Return the texts of one file or of several."""
    if isinstance(path, (str, bytes, os.PathLike)):
        return [file_source(path)]
    paths = _items(path, "path", "files")
    if not paths:
        raise KernelRequestError("the list of files is empty: there is nothing to compile")
    return [file_source(one) for one in paths]


def file_source(path: str | os.PathLike[str]) -> Source:
    """Return the text of a file as it is, because a comment may be in another encoding than UTF-8."""
    with open(path, "rb") as file:
        return file.read(), os.path.abspath(os.fsencode(path))


def is_cuda_file(source: Source) -> bool:
    """Return whether a file is CUDA, as its name says."""
    return source[1].endswith(b".cu")


def stem(sources: Sequence[Source]) -> str:
    """Return the name of the first file without its suffix."""
    return os.path.splitext(os.path.basename(os.fsdecode(sources[0][1])))[0]


def module_name(name: str | None, default: str) -> str:
    """Return the name of a module made from files: the user's `name`, or else `default`."""
    return check_text("the name of the file, so pass name=: it", default) if name is None else _check_name(name)


def _check_name(name: str) -> str:
    if not isinstance(name, str) or not name:
        raise KernelRequestError(f"name must be a non-empty string, not {name!r}")
    return check_text("name", name)


def define_flags(defines: Defines, *, for_nvcc: bool = False) -> tuple[str, ...]:
    """Return a ``-D`` flag for each macro, as C++ compilers or nvcc take them.

    Raises
    ------
    TypeError
        If `defines` is not a mapping, or a value is of another type.
    KernelRequestError
        If a name is not that of a macro, or a value is not finite or has more than one line.
    """
    if defines is None:
        return ()
    if not isinstance(defines, Mapping):
        raise TypeError(f"defines must be a dict of names and values, not {defines!r}")
    return tuple(word for name, value in defines.items() for word in _flag_words(name, value, for_nvcc))


def _flag_words(name: str, value: SupportsIndex | float | str | None, for_nvcc: bool) -> tuple[str] | tuple[str, str]:
    if not isinstance(name, str) or not name.isidentifier() or not name.isascii() or name == "defined":
        raise KernelRequestError(f"defines: {name!r} is not the name of a macro")
    text = "" if value is None else f"={_macro_text(name, value)}"
    macro = name + (_escaped_for_nvcc(text) if for_nvcc else text)
    # In one word, "a -b" could be two flags in one string, which is an error.
    return ("-D", macro) if " -" in macro.expandtabs(1) else (f"-D{macro}",)


def _macro_text(name: str, value: SupportsIndex | float | str) -> str:
    if getattr(value, "shape", None) == () and hasattr(value, "item"):  # a scalar of NumPy
        with contextlib.suppress(TypeError):  # JAX traces it
            value = value.item()
    if isinstance(value, str):
        if "\n" in value or "\r" in value:
            raise KernelRequestError(f"defines[{name!r}] has more than one line: {value!r}")
        return check_text(f"defines[{name!r}]", value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise KernelRequestError(f"defines[{name!r}] is {value}, which C++ has no literal for: pass an expression")
        return _literal(repr(float(value)))
    try:
        return _literal(str(operator.index(value)))
    except TypeError:
        kind = type(value).__qualname__
        raise TypeError(f"defines[{name!r}] must be an int, float, bool, str or None, not {kind}") from None


def _literal(literal: str) -> str:
    return f"({literal})" if literal.startswith("-") else literal  # or "x-N" would be "x--1"


def _escaped_for_nvcc(text: str) -> str:
    """Return `text` so that nvcc, for which a comma outside of a literal begins another macro, reads it as it is."""
    literal = r'"(?:\\.|[^"\\])*(?:"|$)' + "|" + r"'(?:\\.|[^'\\])*(?:'|$)"
    return re.sub(rf"({literal})|[\\,]", lambda found: found[1] or "\\" + found[0], text)
