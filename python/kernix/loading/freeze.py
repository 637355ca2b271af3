# SPDX-License-Identifier: Apache-2.0
"""A frozen process: its loads find what they need, and a build is an error, a warning, or counted."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from typing import Literal, get_args

from kernix import _core
from kernix._errors import KernelCompilationError, KernelNotCachedError, user_line, warn
from kernix._lock import ForkSafeLock
from kernix.loading.report import LoadReport

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


def frozen() -> Freeze | None:
    """Return whether this process is frozen, and how: as the latest freeze says. A forked child inherits it."""
    return next(reversed(_live), None)


def freeze_load(request: _core.Request, policy: str | None) -> Freeze | None:
    """Prepare a load with this `policy` for the freeze of this process. Return how it is frozen, if it is."""
    if (state := frozen()) is None:
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
