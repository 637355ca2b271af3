# SPDX-License-Identifier: Apache-2.0
"""The options behind ``%%cuda`` and ``%%cpp``. They are those of ``kernixctl compile``, as far as a cell needs them."""

from __future__ import annotations

import argparse
import keyword
import shlex
from typing import NoReturn

from IPython.core.error import UsageError

__all__ = ["CellParser", "cpp_parser", "cuda_parser"]


class CellParser(argparse.ArgumentParser):
    """Parser of the first line of a cell. A wrong line raises IPython's ``UsageError``, which is shown as one line."""

    def __init__(self, magic: str, description: str) -> None:
        super().__init__(prog=f"%%{magic}", description=description, add_help=False, allow_abbrev=False)

    def parse_line(self, line: str) -> argparse.Namespace:
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


def cpp_parser() -> CellParser:
    """Return the parser of ``%%cpp``."""
    parser = CellParser("cpp", "Compile the cell as C++ for the CPU. Its functions are then in the notebook, by name.")
    _add_common(parser)
    return parser


def cuda_parser() -> CellParser:
    """Return the parser of ``%%cuda``."""
    parser = CellParser("cuda", "Compile the cell as CUDA. Its functions are then in the notebook, by name.")
    _add_common(parser)
    parser.add_argument("--arch", metavar="A", help="sm_90, 9.0 or a comma list; default: this machine's first GPU")
    parser.add_argument("--use-fast-math", action="store_true", help="less exact arithmetic")
    parser.add_argument("--no-cuda-graph", action="store_true", help="XLA may not capture the functions")
    parser.add_argument("--keep", action="store_true", help="keep what .ptx() and .sass() show")
    return parser


def _add_common(parser: CellParser) -> None:
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
        raise argparse.ArgumentTypeError(f"{name!r} cannot be the name of a variable")
    return name
