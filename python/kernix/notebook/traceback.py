# SPDX-License-Identifier: Apache-2.0
"""The text that IPython shows for an error of a load or a call: the user's frames, and the compiler's first lines."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from kernix._errors import KernelCompilationError

_MOST_LINES = 10  # of a compiler's output
_MAGICS = "kernix.notebook.magics"
_BETWEEN = ("IPython", "jax", "jaxlib")  # what stands between the user and kernix


def traceback_lines(error: Exception) -> list[str]:
    """Return the parts of the text that IPython prints for `error`."""
    from IPython import get_ipython

    shell = get_ipython()
    if shell is None:
        return traceback.format_exception(error)
    shown = _shortened(error)
    frames = _frames_of_user(error.__traceback__)
    if frames is None:
        return list(shell.InteractiveTB.get_exception_only(type(shown), shown))
    with _without_stack_of_jax(shown):
        return list(shell.InteractiveTB.structured_traceback(type(shown), shown, frames, tb_offset=0))


@contextmanager
def _without_stack_of_jax(error: Exception) -> Iterator[None]:
    """Hide the cause that JAX gives an error of a backward function: the whole stack of the forward call."""
    cause = error.__cause__
    if type(cause).__name__ != "JaxStackTraceBeforeTransformation":
        yield
        return
    error.__cause__ = None
    try:
        yield
    finally:
        error.__cause__ = cause


def _shortened(error: Exception) -> Exception:
    if not isinstance(error, KernelCompilationError):
        return error
    lines = error.compiler_output.splitlines()
    if len(lines) <= _MOST_LINES:
        return error
    rest = f"... {len(lines) - _MOST_LINES} more lines are in sys.last_value.compiler_output"
    shown = KernelCompilationError(error.message, "\n".join([*lines[:_MOST_LINES], rest]))
    shown.__cause__, shown.__context__ = error.__cause__, error.__context__
    shown.__suppress_context__ = error.__suppress_context__
    return shown


def _frames_of_user(trace: TracebackType | None) -> TracebackType | None:
    """Return the frames above those of kernix, without IPython's and JAX's. Nothing is left if a cell magic loads."""
    kept: list[TracebackType] = []
    while trace is not None:
        module = trace.tb_frame.f_globals.get("__name__", "")
        if module == _MAGICS:
            return None
        package = module.partition(".")[0]
        if package == "kernix":
            break  # below are kernix and what it calls, such as JAX
        if package not in _BETWEEN:
            kept.append(trace)
        trace = trace.tb_next
    chain = None
    for one in reversed(kept):
        chain = TracebackType(chain, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return chain
