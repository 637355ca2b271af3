# SPDX-License-Identifier: Apache-2.0
"""The output of a running load: compiler output, a progress line, warnings."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from kernix._errors import warn
from kernix._lock import ForkSafeLock

if TYPE_CHECKING:
    from kernix.loading.background import BackgroundWork

_PROGRESS_AFTER_SECONDS = 1.0
_REDRAW_SECONDS = 0.2
_ERASE_LINE = "\r\x1b[K"
_BAR_WIDTH = 20

_terminal_owner = ForkSafeLock()  # one load at a time owns the terminal's last line


class ProgressLine:
    """A line that shows the progress of a load. This one shows nothing."""

    def draw(self, text: str) -> None:
        """Show `text` instead of the earlier text."""

    def erase(self) -> None:
        """Make room for output of the load."""

    def close(self) -> None:
        """End the use of the line by a load."""


#: What follows the loads of this context from another thread: it learns their state, and may cancel them.
supervisor: ContextVar[BackgroundWork[Any] | None] = ContextVar("supervisor", default=None)

#: Where loads of this context show their progress. None: on the terminal.
progress_line: ContextVar[ProgressLine | None] = ContextVar("progress_line", default=None)

#: What loads of this context tell the paths that they depend on besides their sources, before they compile.
input_listener: ContextVar[Callable[[list[bytes]], None] | None] = ContextVar("input_listener", default=None)


class LoadConsole:
    """Observer of one load (see ``_core.load``). All calls come from the thread that loads.

    Output goes to ``sys.stderr``. Progress goes to `progress_line` or, if ``sys.stderr`` is a terminal, to its last
    line, which is erased at the end. It appears once the load has taken a second. A ``sys.stderr`` that is ``None`` or
    closed, or that has only a ``write`` method, never makes a load fail.

    Parameters
    ----------
    name : str
        The module's name, for the progress line.
    """

    def __init__(self, name: str) -> None:
        self.inputs = input_listener.get()
        self._name = name
        self._stream: Any = sys.stderr
        self._line = line_of_context()
        self._supervisor = supervisor.get()
        self._started = time.monotonic()
        self._drawn = 0.0
        self._state = "connecting"

    def __enter__(self) -> LoadConsole:
        return self

    def __exit__(self, *_: object) -> None:
        self._line.close()

    def output(self, text: str) -> None:
        """Print a command or a compiler's message."""
        self._erase()
        write_to(self._stream, text if text.endswith("\n") else text + "\n")

    def progress(self, state: str) -> None:
        """Record the state of the load."""
        if self._supervisor is not None:
            self._supervisor.note(state)
        self._state = state
        self._drawn = 0.0

    def warning(self, message: str) -> None:
        """Issue a message of the client or the daemon as a :class:`KernelWarning`."""
        self._erase()
        warn(message)

    def poll(self) -> None:
        """Draw the progress line if it is due. Called several times a second."""
        if self._supervisor is not None:
            self._supervisor.check()
        now = time.monotonic()
        if now - self._started < _PROGRESS_AFTER_SECONDS or now - self._drawn < _REDRAW_SECONDS:
            return
        self._line.draw(f"kernix: {self._name}: {self._state}, {now - self._started:.0f} s")
        self._drawn = now

    def _erase(self) -> None:
        self._line.erase()
        self._drawn = 0.0


class _TerminalLine(ProgressLine):
    """The last line of a terminal. If another load has it, nothing is drawn."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._owner = False

    def draw(self, text: str) -> None:
        self._owner = self._owner or _terminal_owner.try_acquire()
        if self._owner:
            write_to(self._stream, _ERASE_LINE + text)

    def erase(self) -> None:
        if self._owner:
            write_to(self._stream, _ERASE_LINE)

    def close(self) -> None:
        self.erase()
        if self._owner:
            self._owner = False
            _terminal_owner.release()


class SharedLine(ProgressLine):
    """The one progress line of many loads. The loads only make room for their output."""

    def __init__(self, line: ProgressLine) -> None:
        self._line = line
        self._lock = threading.Lock()

    def show(self, text: str) -> None:
        """Draw, in the thread of the caller."""
        with self._lock:
            self._line.draw(text)

    def end(self) -> None:
        """Give the line back."""
        with self._lock:
            self._line.close()

    def erase(self) -> None:
        """Make room for output, in any thread."""
        with self._lock:
            self._line.erase()


def bar(done: int, total: int) -> str:
    """Return a picture of how many of `total` are done: ``[######--------------]``."""
    full = _BAR_WIDTH * done // max(total, 1)
    return f"[{'#' * full}{'-' * (_BAR_WIDTH - full)}]"


def line_of_context() -> ProgressLine:
    """Return `progress_line`, or else the last line of ``sys.stderr`` if that is a terminal."""
    return progress_line.get() or (_TerminalLine(sys.stderr) if _is_terminal(sys.stderr) else ProgressLine())


def write_to(stream: Any, text: str) -> None:
    """Write `text` to ``sys.stderr`` or what stands for it. It is not an error if the stream refuses it."""
    try:
        stream.write(text)
        stream.flush()
    except (AttributeError, OSError, ValueError):  # None or not a file; the reader is gone; closed
        pass


def _is_terminal(stream: Any) -> bool:
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):
        return False
