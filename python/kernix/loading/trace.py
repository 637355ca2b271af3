# SPDX-License-Identifier: Apache-2.0
"""Where the time of a build went."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass, field
from typing import Any

from kernix import _core
from kernix._errors import KernelResourceError
from kernix.loading import connection


@dataclass(frozen=True)
class BuildStep:
    """A step of a build, or work of kernixd's own. Times are in milliseconds.

    Attributes
    ----------
    name : str
        ``"cicc compute_90"``; with separate units, ``"cicc compute_90 kernel.cu"``.
    how : str
        ``"run"``: a command ran. ``"reused"``: the result was an earlier build's. ``"upstream"``: it was another
        node's. ``"remote"``: a command ran on a worker. ``"kernixd"``: kernixd's own work.
    begin_ms : float
        Since the build began: when the step's inputs were there.
    waited_ms : float
        From then on, until its command started.
    took_ms : float
        From then on.
    peak_memory_bytes : int
        Resident memory of the command's largest process; 0 if it is not known, or no command ran.
    """

    name: str
    how: str
    begin_ms: float
    waited_ms: float
    took_ms: float
    peak_memory_bytes: int = 0


@dataclass(frozen=True)
class BuildTrace:
    """Where the time of a build went, by step. ``print(trace)`` draws it.

    Attributes
    ----------
    name : str
        The module's name.
    key : str
        The module's key.
    began_unix_ms : int
        When kernixd had the request.
    total_ms : float
        From then on, until the library was on the disk.
    steps : tuple of BuildStep
        In the order in which they began.
    left_out : int
        How many short steps are missing, because there were too many to keep.
    """

    name: str
    key: str
    began_unix_ms: int
    total_ms: float
    steps: tuple[BuildStep, ...]
    left_out: int
    _message: bytes = field(repr=False)

    def to_chrome(self) -> dict[str, Any]:
        """Return the trace in Chrome's Trace Event Format, for ``json.dumps``."""
        chrome: dict[str, Any] = json.loads(self._chrome())
        return chrome

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trace to a file for ``chrome://tracing`` or Perfetto (https://ui.perfetto.dev).

        Raises
        ------
        KernelResourceError
            If the file cannot be written.
        """
        try:
            with open(path, "w", encoding="utf-8") as file:
                file.write(self._chrome() + "\n")
        except OSError as error:
            raise KernelResourceError(f"cannot write the trace to {path}: {error.strerror or error}") from error

    def _chrome(self) -> str:
        return _core.chrome_trace(self._message, f"kernixd: {self.name} {self.key[:12]}")

    def __str__(self) -> str:
        return _core.draw_trace(self._message, shutil.get_terminal_size().columns).rstrip("\n")

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Draw the trace where IPython shows it."""
        printer.text(str(self))


def trace_of(core: _core.Module) -> BuildTrace:
    """Return the trace of the build that made a module's library."""
    began_unix_ms, total_ms, steps, left_out, message = connection.client().trace(core.key)
    own_steps = tuple(BuildStep(*step) for step in steps)
    return BuildTrace(core.name, core.key, began_unix_ms, total_ms, own_steps, left_out, message)


BuildStep.__module__ = "kernix"
BuildTrace.__module__ = "kernix"
