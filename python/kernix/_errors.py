# SPDX-License-Identifier: Apache-2.0
"""The exceptions and the warning of kernix, and the conversion of libkernix' errors to them."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial, update_wrapper
from types import FrameType
from typing import ParamSpec, TypeVar, cast

_Error = TypeVar("_Error", bound=Exception)
_BaseError = TypeVar("_BaseError", bound=BaseException)
_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


class KernelError(Exception):
    """Base class of all kernix errors about a kernel.

    Attributes
    ----------
    key : str
        The key of the load if its build has failed, or ``""``. Its first 16 digits name it in kernixd's log.
    """

    key = ""

    def _render_traceback_(self: Exception) -> list[str]:
        """Return the text that IPython shows instead of its own traceback."""
        from kernix.notebook.traceback import traceback_lines

        return traceback_lines(self)


class KernelRequestError(KernelError, ValueError):
    """The request is invalid (a bad token, annotation, signature, name or flag) or too large."""


class KernelToolchainError(KernelError):
    """A compiler is missing, unusable, or does not support the architecture."""


class KernelCompilationError(KernelError):
    """The source does not compile or link.

    Parameters
    ----------
    message : str
        What happened, without the compiler's output.
    compiler_output : str, optional
        The compiler's messages, with lines of the user's own source.
    command : str, optional
        The command line that failed, as it ran in a folder that is gone. It is not part of the error's text, because it
        says nothing about the source.
    failed_command : bytes, optional
        What :meth:`save` writes, as libkernix passes it.

    Attributes
    ----------
    compiler_output : str
    command : str
    """

    def __init__(self, message: str, compiler_output: str = "", command: str = "", failed_command: bytes = b"") -> None:
        super().__init__(message, compiler_output, command)
        self.message = message
        self.compiler_output = compiler_output
        self.command = command
        self._failed_command = failed_command

    def save(self, folder: str | os.PathLike[str]) -> str:
        """Write a folder for running the command again.

        It holds the generated source, kernix's headers and a script ``run.sh``. Links lead to your include paths.

        Parameters
        ----------
        folder : str or os.PathLike
            It is made if it does not exist.

        Returns
        -------
        str
            The path of the script.

        Raises
        ------
        KernelRequestError
            If the error has no command to run again: the sources have more than 32 MiB.
        KernelResourceError
            If the folder cannot be written.
        """
        from kernix import _core

        return os.fsdecode(_core.save_failed_command(self._failed_command, os.fsencode(folder)))

    def __str__(self) -> str:
        parts = [self.message]
        if self.compiler_output and self.compiler_output.strip() not in self.message:
            parts.append(self.compiler_output.rstrip())
        return "\n\n".join(parts)


#: The name that ``brainevent`` gives to :class:`KernelCompilationError`.
CompilationError = KernelCompilationError


class KernelNotCachedError(KernelError):
    """The cache lacks a kernel, and the policy ``"cached"`` forbids compiling it, or there is no compiler here."""


class KernelLoadError(KernelError):
    """A compiled library does not open in this process, or lacks a symbol."""


class KernelCallError(KernelError, RuntimeError):
    """A kernel reported an error in a call without JAX. In a call by JAX, JAX raises its own exception."""


class KernelRegistrationError(KernelError):
    """Other code owns a target name, its `allow_cuda_graph` would change, or JAX refused it."""


class KernelDaemonError(KernelError):
    """No kernixd answers, and the client could not start one."""


class KernelResourceError(KernelError):
    """A limit was reached: the store is full or not writable, or a build took too long."""


class KernelWarning(UserWarning):
    """A problem that is not an error."""


for _error in (KernelError, *KernelError.__subclasses__(), KernelWarning):
    _error.__module__ = "kernix"  # where users find them

_BY_KIND: dict[str, type[KernelError]] = {
    "INVALID_REQUEST": KernelRequestError,
    "TOOLCHAIN": KernelToolchainError,
    "NOT_REGISTERED_TOOLCHAIN": KernelToolchainError,
    "LOAD": KernelLoadError,
    "NOT_CACHED": KernelNotCachedError,
    "REGISTRATION": KernelRegistrationError,
    "UNREACHABLE": KernelDaemonError,
    "CANCELLED": KernelDaemonError,
    "RESOURCE": KernelResourceError,
}


def from_detail(
    kind: str, message: str, compiler_output: str, command: str, failed_command: bytes, key: str
) -> KernelError:
    """Make the exception for an error of libkernix.

    `kind` is the name of a ``kernix.v1.ErrorDetail.Kind``, `failed_command` a ``kernix.v1.FailedCommand``.
    """
    error = (
        KernelCompilationError(message, compiler_output, command, failed_command)
        if kind == "COMPILATION"
        else _BY_KIND.get(kind, KernelError)(message)
    )
    error.key = key
    return error


def short_in_notebook(error: _Error) -> _Error:
    """Return `error`. IPython will show it as it shows a :class:`KernelError`, with the user's frames only."""
    if "IPython" in sys.modules and not hasattr(error, "_render_traceback_"):
        error._render_traceback_ = partial(KernelError._render_traceback_, error)  # type: ignore[attr-defined]
    return error


def shortened(error: _BaseError) -> _BaseError:
    """Return an error to raise again from a public function, without the frames below it, unless they are the user's.

    Frames of kernix and JAX say nothing to users. ``python -X dev`` shows them.
    """
    if isinstance(error, Exception):
        short_in_notebook(error)
    if isinstance(error, KeyboardInterrupt) and not sys.flags.dev_mode:
        return error.with_traceback(None)
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or sys.flags.dev_mode or _package(trace.tb_frame) not in _WITHOUT_USERS_CODE:
        return error
    return error.with_traceback(None)


def short_errors(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Wrap a public function: its exceptions go through :func:`shortened`, and show no frame of the wrapper."""
    from kernix import _core  # the exceptions are there without it

    return cast("Callable[_Parameters, _Result]", update_wrapper(_core.function(), function))


_WITHOUT_USERS_CODE = ("kernix", "jax", "jaxlib")
_NOT_OF_USERS = ("kernix", "IPython")  # IPython calls the cell magics


#: What receives the warnings of this context, if no line of the user's code causes them.
warning_listener: ContextVar[Callable[[str], None] | None] = ContextVar("warning_listener", default=None)


def warn(message: str) -> None:
    """Warn about `message` at the line of the user's code that called kernix."""
    if (listener := warning_listener.get()) is not None:
        listener(message)
        return
    warnings.warn(message, KernelWarning, stacklevel=_user_frame()[1] - 1)


def add_note(error: BaseException, text: str) -> None:
    """Add what Python, or on 3.10 its backport of exception groups, prints below the error."""
    error.__dict__.setdefault("__notes__", []).append(text)


def user_line() -> str:
    """Return the line of the user's code that called kernix: ``"train.py:12"``, with the file's whole path."""
    frame, _ = _user_frame()
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _user_frame() -> tuple[FrameType, int]:
    """Return the first frame outside of kernix, and how many frames it is above this function, which is 1."""
    level = 1
    frame = sys._getframe()
    while frame.f_back is not None and _package(frame) in _NOT_OF_USERS:
        frame = frame.f_back
        level += 1
    return frame, level


def _package(frame: FrameType) -> str:
    name: str = frame.f_globals.get("__name__", "")
    return name.partition(".")[0]
