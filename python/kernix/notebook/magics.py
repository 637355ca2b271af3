# SPDX-License-Identifier: Apache-2.0
"""The cell magics ``%%cuda`` and ``%%cpp``. Their options are the parameters of the loads."""

from __future__ import annotations

import keyword
import re
import shlex
from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, BooleanOptionalAction
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import Parameter, signature
from typing import Any, NoReturn

from IPython.core.error import UsageError
from IPython.display import DisplayHandle

from kernix._errors import KernelCompilationError, KernelError
from kernix.loading.console import ProgressLine, progress_line
from kernix.loading.load import load_cpp_inline, load_cuda_inline
from kernix.loading.module import CompiledModule, origin_in_words

#: The module of all cells without a name. Their functions replace each other by name, as Python's functions do.
_UNNAMED = "cell"

#: The other way than annotations to name functions, in kernixd's words.
_NOT_IN_CELLS = ", or pass 'functions'"

#: Parameters that cells have no options for.
_SET_BY_CELLS = ("auto_register", "replace", "target_prefix", "wait")

#: Parameters that messages name, as options of cells.
_LONG_NAMES = [
    name
    for name in signature(load_cuda_inline).parameters
    if "_" in name and name not in ("cuda_sources", *_SET_BY_CELLS)
]

_SHORT = {"defines": ["-D"], "extra_include_paths": ["-I"], "optimization_level": ["-O"], "verbose": ["-v"]}


def add_magics(shell: Any) -> None:
    """Register the magics with IPython's `shell`."""
    for magic, load in (("cpp", load_cpp_inline), ("cuda", load_cuda_inline)):
        parser = _CellParser(magic, load)
        shell.register_magic_function(_cell_magic(shell, parser, load), magic_kind="cell", magic_name=magic)
        shell.set_hook("complete_command", _completer(parser), str_key=f"%%{magic}")


def _completer(parser: ArgumentParser) -> Callable[[Any, Any], list[str]]:
    """Return what completes the options of a cell's first line. IPython picks those that fit the word at the cursor."""
    options = sorted(parser._option_string_actions)
    return lambda shell, event: options


def _cell_magic(shell: Any, parser: _CellParser, load: Callable[..., CompiledModule]) -> Callable[[str, str], None]:
    loaded: dict[str, str] = {}  # the content of what the latest cell of each name has loaded

    def run(line: str, cell: str) -> None:
        variable, options = parser.parse_line(line)
        name = variable or _UNNAMED
        # The line of the magic counts, so that messages name the lines that the notebook shows.
        with _status_line(shell, name) as status:
            try:
                module = load(name, "\n" + cell, **options)
            except KernelError as error:
                if isinstance(error, KernelCompilationError):  # the compiler's words are about the user's names
                    error.message = _in_words_of_cells(error.message, line, before=" in ")
                else:
                    error.args = (_in_words_of_cells(str(error), line),)
                raise
            status(_summary(module, is_new=loaded.get(module.name) != module.content_hash))
            loaded[module.name] = module.content_hash
        if variable:
            shell.push({variable: module})
        shell.push({name: module[name] for name in module})

    run.__doc__ = parser.format_help()
    return run


def _in_words_of_cells(message: str, line: str, *, before: str = "") -> str:
    first, end, more = message.replace(_NOT_IN_CELLS, "").partition("\n")
    names = "|".join(_LONG_NAMES)
    first = re.sub(rf"{before}\b({names})\b", lambda found: f"{before}--" + found[1].replace("_", "-"), first)
    left = re.search(r"\{([A-Za-z_][^{}]*)\}", line)
    if left and left[1] in first:
        first += f". {left[0]} is what the line of the magic says: Python has no such value"
    return first + end + more


@contextmanager
def _status_line(shell: Any, name: str) -> Iterator[Callable[[str], None]]:
    """Show a load's progress in the cell, then what the body passes to the function that it gets."""
    if not hasattr(shell, "kernel"):  # IPython on a terminal, where the load shows its progress by itself
        yield print
        return
    line = _CellLine()
    token = progress_line.set(line)
    try:
        yield line.draw
    except BaseException:
        line.draw(f"{name}: not loaded")
        raise
    finally:
        progress_line.reset(token)


def _summary(module: CompiledModule, is_new: bool) -> str:
    how = origin_in_words(module._code.core) if is_new else "unchanged"
    return f"{module.name}: {', '.join(module)} ({how})"


class _CellLine(ProgressLine):
    """One line of a cell's output. It appears when it is first drawn, and stays: output has its own place."""

    def __init__(self) -> None:
        self._handle = DisplayHandle()
        self._text = ""

    def draw(self, text: str) -> None:
        """Show `text` instead of the earlier text."""
        if text == self._text:
            return
        if self._text:
            self._handle.update({"text/plain": text}, raw=True)
        else:
            self._handle.display({"text/plain": text}, raw=True)
        self._text = text


class _CellParser(ArgumentParser):
    """Parser of the first line of a cell: its options are the parameters of `load`, as far as cells need them.

    A wrong line raises IPython's ``UsageError``, which is shown as one line.
    """

    def __init__(self, magic: str, load: Callable[..., CompiledModule]) -> None:
        super().__init__(
            prog=f"%%{magic}",
            description="Compile the cell. Its functions are then in the notebook, by name. The options are parameters "
            f"of kernix.{load.__name__}().",
            add_help=False,
            allow_abbrev=False,
            argument_default=SUPPRESS,
        )
        self.add_argument("name", nargs="?", default=None, type=_identifier, help="of the module and its variable")
        for parameter in signature(load).parameters.values():
            if parameter.kind is parameter.KEYWORD_ONLY and parameter.name not in _SET_BY_CELLS:
                self._add_parameter(parameter)

    def _add_parameter(self, parameter: Parameter) -> None:
        flags = [*_SHORT.get(parameter.name, []), f"--{parameter.name.replace('_', '-')}"]
        if isinstance(parameter.default, bool):
            self.add_argument(*flags, action="store_true" if parameter.default is False else BooleanOptionalAction)
        elif parameter.name == "defines":
            self.add_argument(*flags, action="append", type=_macro, metavar="M", help="NAME or NAME=VALUE")
        elif "Sequence" in parameter.annotation:
            self.add_argument(*flags, action="append", metavar="A", help="may be repeated")
        else:
            self.add_argument(*flags, type=int if "int" in parameter.annotation else str, metavar="A")

    def parse_line(self, line: str) -> tuple[str, dict[str, Any]]:
        """Return the name in a line, which is split as a shell would, and the parameters of the load."""
        try:
            words = shlex.split(line)
        except ValueError as error:
            self.error(str(error))
        options = vars(self.parse_intermixed_args(words))
        options["defines"] = dict(options.get("defines", ()))
        return options.pop("name") or "", {**options, "wait": True, "replace": True}

    def error(self, message: str) -> NoReturn:
        """Raise the error for a wrong line."""
        if message.endswith("expected one argument"):
            message += " (join a value that begins with - to its option: --extra-cflags=-Wall)"
        raise UsageError(f"{self.prog}: {message}. {self.prog}? lists the options")


def _macro(text: str) -> tuple[str, str | None]:
    name, equals, value = text.partition("=")
    return name, value if equals else None


def _identifier(name: str) -> str:
    if not name.isidentifier() or keyword.iskeyword(name):
        raise ArgumentTypeError(f"{name!r} cannot be the name of a variable")
    return name
