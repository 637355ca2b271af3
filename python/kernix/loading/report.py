# SPDX-License-Identifier: Apache-2.0
"""What the loads of this process were, how long they took, and whether a later one may still need a build."""

from __future__ import annotations

import os
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Literal, NamedTuple, get_args

from kernix import _core
from kernix._errors import KernelCompilationError, KernelNotCachedError, user_line, warn
from kernix._lock import ForkSafeLock

_MOST_LOADS = 4096  # as many as libkernix remembers
_LONGEST_REASON = 500
_MOST_ROWS = 20
_COLUMNS = ("module", "origin", "seconds", "build ms", "why")


class LoadReport(NamedTuple):
    """The outcome of one load.

    Attributes
    ----------
    name : str
        Name of the module; for a load of :func:`kernix.load_many` that was refused, what it should compile.
    origin : str
        Where the module comes from: ``"process"`` (it was loaded already), ``"bundle"``, ``"file"``, ``"cache"``,
        ``"upstream"`` (another node had built it), ``"built"``, ``"joined"`` (the load waited for a build that another
        load had started), or ``"failed"``.
    seconds : float
        How long the load took.
    build_ms : int
        How long the build took; 0 if there was none.
    reason : str
        Why a build was needed, or why the load failed. Empty otherwise.
    """

    name: str
    origin: str
    seconds: float = 0.0
    build_ms: int = 0
    reason: str = ""

    def __str__(self) -> str:
        reason = f": {self.reason}" if self.reason else ""
        return f"{self.name}: {self.origin}, {self.seconds:.2f} s{reason}"


class ProcessReport(NamedTuple):
    """The loads of this process, as :func:`kernix.report` returns them. ``print()`` shows a summary.

    Attributes
    ----------
    counts : dict
        How many loads had each origin (see :class:`LoadReport`), such as ``{"built": 2, "process": 40}``.
    seconds : float
        How long all loads took, added up. Loads side by side count each.
    build_ms : int
        How long the builds took for which loads have waited, added up.
    loads : tuple of LoadReport
        The last 4,096 loads, in the order of their ends, without those of modules that the process had already.
    after_freeze : dict
        How many loads of the frozen process needed a build, and ``"built"``, ``"failed"`` or were ``"refused"``.
    frozen : str
        How the process is frozen now, for people; empty if it is not. See :func:`kernix.freeze`.
    """

    counts: dict[str, int]
    seconds: float
    build_ms: int
    loads: tuple[LoadReport, ...]
    after_freeze: dict[str, int]
    frozen: str = ""

    @property
    def builds(self) -> int:
        """How many loads had to build; a load that has joined the build of another is not one of them."""
        return self.counts.get("built", 0)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        lines = self._summary()
        if self.loads:
            lines += ["", *text_table(self._table())]
        if self._left_out():
            lines.append(self._left_out())
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from html import escape

        table = html_table(self._table() if self.loads else [])
        return f"{'<br>'.join(map(escape, self._summary()))}{table}{self._left_out()}"

    def _summary(self) -> list[str]:
        total = sum(self.counts.values())
        lines = [f"{total} {'load' if total == 1 else 'loads'} in {self.seconds:.2f} s{_listed(self.counts)}"]
        if self.frozen:
            lines.append(self.frozen)
        if self.after_freeze:
            lines.append(f"needed a build after freeze(){_listed(self.after_freeze)}")
        return lines

    def _table(self) -> Sequence[Sequence[str]]:
        longest = sorted(self.loads, key=lambda one: -one.seconds)[:_MOST_ROWS]
        return [_COLUMNS, *map(_row, longest)]

    def _left_out(self) -> str:
        more = len(self.loads) - _MOST_ROWS
        return f"and {more} that took less time" if more > 0 else ""


def _listed(counts: Mapping[str, int]) -> str:
    return "".join(f", {count} {what}" for what, count in sorted(counts.items()))


def _row(one: LoadReport) -> tuple[str, ...]:
    return (one.name, one.origin, f"{one.seconds:.2f}", str(one.build_ms or ""), one.reason)


def text_table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def html_table(rows: Sequence[Sequence[str]]) -> str:
    """Return a table for a notebook. The first row is its head."""
    from html import escape

    tags = ["th", *["td"] * len(rows)]
    cells = ["".join(f"<{tag}>{escape(text)}</{tag}>" for text in row) for tag, row in zip(tags, rows, strict=False)]
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"


def in_a_line(error: Exception) -> str:
    """Return an error as the reason of a :class:`LoadReport`."""
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


class _Loads:
    """What this process has noted of its loads."""

    def __init__(self) -> None:
        self._lock = ForkSafeLock()
        self._forget()
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self._counts: Counter[str] = Counter()
        self._seconds = 0.0
        self._build_ms = 0
        self._loads: deque[LoadReport] = deque(maxlen=_MOST_LOADS)
        self._after_freeze: Counter[str] = Counter()

    def note(self, load: LoadReport, after_freeze: str) -> None:
        with self._lock:
            if after_freeze:
                self._after_freeze[after_freeze] += 1
            self._counts[load.origin] += 1
            self._seconds += load.seconds
            if load.origin != "process":
                self._build_ms += load.build_ms
                self._loads.append(load._replace(reason=load.reason[:_LONGEST_REASON]))

    def report(self) -> ProcessReport:
        with self._lock:
            sums = dict(self._counts), self._seconds, self._build_ms
            return ProcessReport(*sums, tuple(self._loads), dict(self._after_freeze))


_of_process = _Loads()


def note(load: LoadReport, after_freeze: str = "") -> None:
    """Note the end of a load of this process, and what became of it if the frozen process needed a build."""
    _of_process.note(load, after_freeze)


def report() -> ProcessReport:
    """Return what the loads of this process were, and how long they took.

    A forked child begins anew.

    Returns
    -------
    ProcessReport
        ``print()`` shows a summary, with the loads that took longest; a notebook shows a table.
    """
    return _of_process.report()._replace(frozen=str(_frozen() or ""))


#: What happens when a load of a frozen process needs a build.
Action = Literal["raise", "warn", "count"]


class Freeze(AbstractContextManager[None]):
    """That this process is frozen, until the end of this context.

    Parameters
    ----------
    action : Action
        What happens when a load needs a build.
    origin : str
        Where and when the process was frozen.
    """

    def __init__(self, action: Action, origin: str) -> None:
        self.action = action
        self.origin = origin

    def __exit__(self, *_: object) -> None:
        with _lock:
            if self in _live:
                _live.remove(self)

    def __str__(self) -> str:
        return f"frozen ({self.action}) {self.origin}"

    def outcome_of(self, load: LoadReport, error: Exception | None) -> str:
        """Return what has become of a load that needed a build: built, failed, refused. Empty if it needed none."""
        if isinstance(error, KernelNotCachedError):
            return "refused"
        if isinstance(error, KernelCompilationError):
            return "failed"
        return "built" if load.origin == "built" else ""

    def refusal(self, error: KernelNotCachedError) -> KernelNotCachedError:
        """Return the error to raise for that of a load that may not build."""
        return KernelNotCachedError(f"{error} The process was frozen {self.origin}.")

    def warn_of(self, load: LoadReport) -> None:
        """Warn that a load has built."""
        text = (
            f"module {load.name!r} was built in {load.build_ms} ms, in a process that was frozen {self.origin}: "
            f'{load.reason}. Load it before, or with policy="build".'
        )
        if shown := _core.shown_warning("build-after-freeze", text):
            warn(shown)


def _frozen() -> Freeze | None:
    """Return whether this process is frozen, and how: as the latest freeze says. A forked child inherits it."""
    return next(reversed(_live), None)


def freeze_load(request: _core.Request, policy: str | None) -> Freeze | None:
    """Prepare a load with this `policy` for the freeze of this process. Return how it is frozen, if it is."""
    if (state := _frozen()) is None:
        return None
    request.frozen = True
    if policy is not None:
        return Freeze("count", state.origin)
    if state.action == "raise":
        request.policy = "cached"
    return state


def freeze(action: Action = "raise") -> AbstractContextManager[object]:
    """Expect that no later load of this process needs a build.

    Call it when the process has loaded what it needs. It holds for all threads and for forked children, until
    :func:`unfreeze`. As a context manager, it holds for its block: ``with kernix.freeze(): ...``.

    Loads of what the cache has go on. A load may also wait for a build that somebody else has started. For a load with
    ``policy="build"``, somebody expects a build: it builds, and is only counted. A load with ``wait=False`` counts as
    frozen if the process was when you called it.

    Parameters
    ----------
    action : {"raise", "warn", "count"}, default "raise"
        What happens when a load needs a build. ``"raise"``: it fails with :class:`KernelNotCachedError`, which says
        what was new. ``"warn"``: it builds, and gives a :class:`KernelWarning`. ``"count"``: it builds. All three are
        counted by :func:`report` and by kernixd (``kernix_builds_after_freeze_total``).

    Returns
    -------
    context manager
        At its end, this freeze ends. Another one that goes on, in another thread or around it, then holds again.
    """
    if action not in get_args(Action):
        raise ValueError(f'action is {action!r}. It takes "raise", "warn" and "count".')
    one = Freeze(action, f"by {user_line()} at {time.strftime('%Y-%m-%d %H:%M:%S')}")
    with _lock:
        _live.append(one)
    return one


def unfreeze() -> None:
    """End all that :func:`freeze` began: later loads may build."""
    with _lock:
        _live.clear()


_lock = ForkSafeLock()
_live: list[Freeze] = []  # the freezes that hold; the latest decides


for _public in (LoadReport, ProcessReport):
    _public.__module__ = "kernix"
