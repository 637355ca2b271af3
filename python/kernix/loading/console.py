# SPDX-License-Identifier: Apache-2.0
"""The output of a running load: compiler output, a progress line, warnings."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

from kernix._errors import warn
from kernix._lock import ForkSafeLock

__all__ = ["LoadConsole"]

_PROGRESS_AFTER_SECONDS = 1.0
_REDRAW_SECONDS = 0.2
_ERASE_LINE = "\r\x1b[K"

_progress_owner = ForkSafeLock()  # one load at a time owns the terminal's last line


class LoadConsole:
    """Observer of one load (see ``_core.load``). All calls come from the thread that loads.

    Output and progress go to ``sys.stderr``. The progress line appears only on a terminal, once the load has taken a
    second, and is erased at the end. A ``sys.stderr`` that is ``None`` or closed, or that has only a ``write`` method,
    never makes a load fail.

    Parameters
    ----------
    name : str
        The module's name, for the progress line.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._stream: Any = sys.stderr
        self._terminal = _is_terminal(self._stream)
        self._started = time.monotonic()
        self._drawn = 0.0
        self._state = "connecting"
        self._owner = False

    def __enter__(self) -> LoadConsole:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._erase()
        if self._owner:
            _progress_owner.release()

    def output(self, text: str) -> None:
        """Print a command or a compiler's message."""
        self._erase()
        self._write(text if text.endswith("\n") else text + "\n")

    def progress(self, state: str) -> None:
        """Record the state of the load."""
        self._state = state
        self._drawn = 0.0

    def warning(self, message: str) -> None:
        """Issue a message of the client or the daemon as a :class:`KernelWarning`."""
        self._erase()
        warn(message)

    def poll(self) -> None:
        """Draw the progress line if it is due. Called several times a second."""
        if not self._terminal:
            return
        now = time.monotonic()
        if now - self._started < _PROGRESS_AFTER_SECONDS or now - self._drawn < _REDRAW_SECONDS:
            return
        self._owner = self._owner or _progress_owner.try_acquire()
        if self._owner:
            self._write(f"{_ERASE_LINE}kernix: {self._name}: {self._state}, {now - self._started:.0f} s")
            self._drawn = now

    def _erase(self) -> None:
        if self._owner:
            self._write(_ERASE_LINE)
            self._drawn = 0.0

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (AttributeError, OSError, ValueError):  # None or not a file; the reader is gone; closed
            pass


def _is_terminal(stream: Any) -> bool:
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):
        return False
