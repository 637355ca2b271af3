# SPDX-License-Identifier: Apache-2.0
"""The cell magics ``%%cuda`` and ``%%cpp``.

Their options are those of ``kernixctl compile``, as far as a cell needs them.
"""

from __future__ import annotations

import keyword
import shlex
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from IPython.core.error import UsageError
from IPython.display import DisplayHandle

from kernix._errors import KernelRequestError, KernelToolchainError
from kernix.loading.console import ProgressLine, progress_line
from kernix.loading.load import load_cpp_inline, load_cuda_inline
from kernix.loading.module import CompiledModule, origin_in_words

__all__ = ["add_magics"]

#: The module of all cells without a name. Their functions replace each other by name, as Python's functions do.
_UNNAMED = "cell"

#: The other way than annotations to name functions, in kernixd's words.
_NOT_IN_CELLS = ", or pass 'functions'"

#: What messages call an argument of the loads, and the option of a cell for it.
_OPTIONS = {
    "compute_capability": "--arch",
    "extra_cflags": "--flag",
    "extra_cuda_cflags": "--flag",
    "extra_include_paths": "--include",
    "extra_ldflags": "--link-flag",
}

_Load = Callable[[str, str, Namespace], CompiledModule]


def add_magics(shell: Any) -> None:
    """Register the magics with IPython's `shell`."""
    for magic, parser, load in (("cpp", _cpp_parser(), _load_cpp), ("cuda", _cuda_parser(), _load_cuda)):
        shell.register_magic_function(_cell_magic(shell, parser, load), magic_kind="cell", magic_name=magic)
        shell.set_hook("complete_command", _completer(parser), str_key=f"%%{magic}")


def _completer(parser: ArgumentParser) -> Callable[[Any, Any], list[str]]:
    """Return what completes the options of a cell's first line. IPython picks those that fit the word at the cursor."""
    options = sorted(parser._option_string_actions)
    return lambda shell, event: options


def _cell_magic(shell: Any, parser: _CellParser, load: _Load) -> Callable[[str, str], None]:
    loaded: dict[str, str] = {}  # the content of what the latest cell of each name has loaded

    def magic(line: str, cell: str) -> None:
        options = parser.parse_line(line)
        # The line of the magic counts, so that messages name the lines that the notebook shows.
        with _status_line(shell, options.name or _UNNAMED) as status:
            with _words_for_cells():
                module = load(options.name or _UNNAMED, "\n" + cell, options)
            status(_summary(module, is_new=loaded.get(module.name) != module.content_hash))
            loaded[module.name] = module.content_hash
        if options.name:
            shell.push({options.name: module})
        shell.push({name: module[name] for name in module})

    magic.__doc__ = parser.format_help()
    return magic


def _load_cpp(name: str, source: str, options: Namespace) -> CompiledModule:
    level = [] if options.optimization_level is None else [f"-O{options.optimization_level}"]
    return load_cpp_inline(name, source, extra_cflags=[*level, *_flags(options)], wait=True, **_common(options))


def _load_cuda(name: str, source: str, options: Namespace) -> CompiledModule:
    return load_cuda_inline(
        name,
        source,
        wait=True,
        extra_cuda_cflags=_flags(options),
        optimization_level=3 if options.optimization_level is None else options.optimization_level,
        compute_capability=options.arch,
        use_fast_math=options.use_fast_math,
        allow_cuda_graph=not options.no_cuda_graph,
        keep=options.keep,
        **_common(options),
    )


def _flags(options: Namespace) -> list[str]:
    return [*(f"-D{macro}" for macro in options.define), *options.flag]


def _common(options: Namespace) -> dict[str, Any]:
    return {
        "extra_ldflags": options.link_flag,
        "extra_include_paths": options.include,
        "debug": options.debug,
        "force_rebuild": options.force,
        "policy": options.policy,
        "verbose": options.verbose,
        "replace": True,
    }


@contextmanager
def _words_for_cells() -> Iterator[None]:
    """Make errors name a cell's options instead of a load's."""
    try:
        yield
    except (KernelRequestError, KernelToolchainError) as error:
        message = str(error).replace(_NOT_IN_CELLS, "")
        words = [f"{argument} is {option}" for argument, option in _OPTIONS.items() if argument in message]
        if words:
            message += f"\nIn a cell, {', '.join(words)}."
        if message == str(error):
            raise
        raise type(error)(message) from None


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
    """Parser of the first line of a cell. A wrong line raises IPython's ``UsageError``, which is shown as one line."""

    def __init__(self, magic: str, description: str) -> None:
        super().__init__(prog=f"%%{magic}", description=description, add_help=False, allow_abbrev=False)

    def parse_line(self, line: str) -> Namespace:
        """Return the options of a line, which is split as a shell would."""
        try:
            words = shlex.split(line)
        except ValueError as error:
            self.error(str(error))
        return self.parse_intermixed_args(words)

    def error(self, message: str) -> NoReturn:
        """Raise the error for a wrong line."""
        if message.endswith("expected one argument"):
            message += " (join a value that begins with - to its option: --flag=-Wall)"
        raise UsageError(f"{self.prog}: {message}. {self.prog}? lists the options")


def _cpp_parser() -> _CellParser:
    """Return the parser of ``%%cpp``."""
    parser = _CellParser("cpp", "Compile the cell as C++ for the CPU. Its functions are then in the notebook, by name.")
    _add_common(parser)
    return parser


def _cuda_parser() -> _CellParser:
    """Return the parser of ``%%cuda``."""
    parser = _CellParser("cuda", "Compile the cell as CUDA. Its functions are then in the notebook, by name.")
    _add_common(parser)
    parser.add_argument("--arch", metavar="A", help="sm_90, 9.0 or a comma list; default: this machine's first GPU")
    parser.add_argument("--use-fast-math", action="store_true", help="less exact arithmetic")
    parser.add_argument("--no-cuda-graph", action="store_true", help="XLA may not capture the functions")
    parser.add_argument("--keep", action="store_true", help="keep what .ptx() and .sass() show")
    return parser


def _add_common(parser: _CellParser) -> None:
    add = parser.add_argument
    add("name", nargs="?", type=_identifier, help="name of the module, and of the variable that holds it")
    add("-O", type=int, choices=range(4), dest="optimization_level", help="optimisation level (3, or 0 with --debug)")
    add("-D", "--define", action="append", default=[], metavar="M", help="NAME or NAME=VALUE for the preprocessor")
    add("-I", "--include", action="append", default=[], metavar="DIR", help="folder to search for headers")
    add("--flag", action="append", default=[], metavar="F", help="another flag of the compiler: --flag=-Wall")
    add("--link-flag", action="append", default=[], metavar="F", help="flag of the linker: --link-flag=-lm")
    add("--debug", action="store_true", help="for a debugger, a profiler or a sanitizer: no optimisation")
    add("--force", action="store_true", help="compile even if the cache has the result")
    add("--policy", choices=("build", "cached"), help="if the cache lacks the result: compile it, or fail")
    add("-v", "--verbose", action="store_true", help="show commands and compiler output")


def _identifier(name: str) -> str:
    if not name.isidentifier() or keyword.iskeyword(name):
        raise ArgumentTypeError(f"{name!r} cannot be the name of a variable")
    return name
