# SPDX-License-Identifier: Apache-2.0
"""The cell magics ``%%cuda`` and ``%%cpp``."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kernix._errors import KernelRequestError, KernelToolchainError
from kernix.loading.console import progress_line
from kernix.loading.load import load_cpp_inline, load_cuda_inline
from kernix.loading.module import CompiledModule, origin
from kernix.notebook.options import CellParser, cpp_parser, cuda_parser
from kernix.notebook.progress import CellLine

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
    for magic, parser, load in (("cpp", cpp_parser(), _load_cpp), ("cuda", cuda_parser(), _load_cuda)):
        shell.register_magic_function(_cell_magic(shell, parser, load), magic_kind="cell", magic_name=magic)


def _cell_magic(shell: Any, parser: CellParser, load: _Load) -> Callable[[str, str], None]:
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
    """Have errors speak of what a cell offers, and not of what a load does."""
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
    line = CellLine()
    token = progress_line.set(line)
    try:
        yield line.draw
    except BaseException:
        line.draw(f"{name}: not loaded")
        raise
    finally:
        progress_line.reset(token)


def _summary(module: CompiledModule, is_new: bool) -> str:
    how = origin(module._code.core) if is_new else "unchanged"
    return f"{module.name}: {', '.join(module)} ({how})"
