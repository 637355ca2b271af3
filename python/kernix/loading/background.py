# SPDX-License-Identifier: Apache-2.0
"""Loads that go on in threads of their own."""

from __future__ import annotations

import asyncio
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from contextvars import copy_context
from typing import Any, TypeVar

from kernix._errors import (
    KernelDaemonError,
    KernelNotCachedError,
    add_note,
    short_errors,
    shortened,
    user_line,
    warn,
    warning_listener,
)
from kernix._lock import ForkSafeLock
from kernix.loading.console import ProgressLine, progress_line, supervisor
from kernix.loading.load import Fetched, PreparedLoad
from kernix.loading.module import CompiledModule

_Result = TypeVar("_Result")

_MOST_AT_ONCE = 64  # threads; they wait for the daemon nearly all the time


class BackgroundWork(Future[_Result]):
    """A load, a part of one, or a batch of them, in other threads.

    Parameters
    ----------
    name : str
        The name of its module.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self._called_at = user_line()
        self._stage = "waiting for a thread"
        self._to_cancel = False
        self._seconds = 0.0  # how long the work took
        self._warnings: list[str] = []
        _unfinished.add(self)

    @property
    def name(self) -> str:
        """Name of the module. For a batch, that of its first module, and how many more there are."""
        return self._name

    @property
    def progress(self) -> str:
        """The load's progress, in words: ``"queued (3 ahead)"``, ``"compile (1/2)"``, ``"done"``."""
        return "done" if self.done() else self._stage

    def cancel(self) -> bool:
        """Cancel the load. A running load ends soon; the result is then a ``CancelledError``.

        Returns
        -------
        bool
            False if the load had already ended.
        """
        self._to_cancel = True
        return super().cancel() or not self.done()

    def note(self, state: str) -> None:
        """Learn the state of the load."""
        self._stage = state

    def check(self) -> None:
        """Cancel the load if somebody has asked for that. Called several times a second."""
        if self._to_cancel:
            raise CancelledError

    def start(self, work: Callable[[], _Result], line: ProgressLine | None = None) -> None:
        """Do `work` in another thread, in a copy of this context. Called once."""
        context = copy_context()
        _threads.submit(lambda: context.run(self._run, work, line or ProgressLine()))

    def _run(self, work: Callable[[], _Result], line: ProgressLine) -> None:
        if not self.set_running_or_notify_cancel():
            return
        self._stage = "starting"
        began = time.monotonic()
        supervisor.set(self)
        progress_line.set(line)
        warning_listener.set(self._warnings.append)
        try:
            self.check()
            result = work()
        except BaseException as error:
            if isinstance(error, KernelNotCachedError):
                add_note(error, f"The load of {self._name} was started at {self._called_at}.")
            self._end(began)
            self.set_exception(error)
        else:
            self._end(began)
            self.set_result(result)

    def _end(self, began: float) -> None:
        self._seconds = time.monotonic() - began
        warning_listener.set(None)  # the future's callbacks run in this context, too

    def give_warnings(self) -> None:
        """Issue the warnings of the load, once, at the line of the user's code that asks for its result."""
        while self._warnings:
            warn(self._warnings.pop(0))

    def lose(self) -> None:
        """End in a forked child, which does not have the working thread."""
        BackgroundWork.__init__(self, self._name)  # with locks that no thread holds
        self.set_exception(
            KernelDaemonError(
                f"the load of {self._name} was under way when this process was forked, and goes on in the parent "
                "only. Load it here, too; what the parent builds is in the cache."
            )
        )


class BackgroundFetch(BackgroundWork[Fetched]):
    """The part of a load that another thread does for who makes many: compile, and open the library."""

    def __init__(self, prepared: PreparedLoad, line: ProgressLine | None = None) -> None:
        super().__init__(prepared.request.name)
        self._prepared = prepared
        self.start(prepared.fetch, line)

    def module(self) -> CompiledModule:
        """Return the module, which this thread delivers, or raise what made the load fail."""
        return self._prepared.deliver(self.result())


class LoadFuture(BackgroundWork[_Result]):
    """A load in the background: what the ``load_...`` functions return with ``wait=False``.

    It is a ``concurrent.futures.Future``, so ``concurrent.futures.wait`` and ``as_completed`` take it, and ``await``
    works on it. Its module is registered with JAX, as the load asks for, when it is done. Warnings of the load are
    issued by :meth:`result`. That of :func:`load_many` has all modules, and is done when all loads have ended.
    """

    __module__ = "kernix"

    @short_errors
    def result(self, timeout: float | None = None) -> _Result:
        """Return the module, or the modules; wait if necessary.

        Parameters
        ----------
        timeout : float, optional
            Seconds to wait. Default: until the load ends.

        Returns
        -------
        CompiledModule, or LoadedModules of :func:`load_many`

        Raises
        ------
        TimeoutError
            If the load has not ended in time. It goes on.
        concurrent.futures.CancelledError
            If it was cancelled.
        KernelError, OSError
            As the load raises without ``wait=False``.
        """
        try:
            return super().result(timeout)
        finally:
            if self.done():
                self.give_warnings()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Return what :meth:`result` raises, or None; wait if necessary."""
        error = super().exception(timeout)
        return None if error is None else shortened(error)

    def __await__(self) -> Generator[Any, None, _Result]:
        """Wait in a coroutine. If its task is cancelled, so is the load."""
        loop = asyncio.get_running_loop()
        ended = loop.create_future()

        def wake() -> None:
            if not ended.done():
                ended.set_result(None)

        def tell(_: object) -> None:
            with suppress(RuntimeError):  # the loop is closed, so nobody waits
                loop.call_soon_threadsafe(wake)

        self.add_done_callback(tell)
        try:
            yield from ended.__await__()
        except asyncio.CancelledError:
            self.cancel()
            raise
        return self.result()

    def __repr__(self) -> str:
        return f"LoadFuture({self.name!r}: {self.progress})"


class _Threads:
    """Daemon threads that work off a queue, and end when it is empty. The process may end while they work."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = ForkSafeLock()
        self.forget()

    def forget(self) -> None:
        """Start again, in a forked child, which has none of the threads."""
        self._queue: deque[Callable[[], None]] = deque()
        self._running = 0

    def submit(self, work: Callable[[], None]) -> None:
        """Have `work` done by the next thread that is free."""
        with self._lock:
            self._queue.append(work)
            if self._running == self._most:
                return
            self._running += 1
        try:
            threading.Thread(target=self._work_off, name="kernix.load", daemon=True).start()
        except RuntimeError:  # the process may have no more threads
            with self._lock:
                self._running -= 1
                if self._running > 0 or work not in self._queue:
                    return  # another thread does it, or has done it
                self._queue.remove(work)
            raise

    def _work_off(self) -> None:
        while (work := self._next()) is not None:
            work()

    def _next(self) -> Callable[[], None] | None:
        with self._lock:
            if self._queue:
                return self._queue.popleft()
            self._running -= 1
            return None


_unfinished: weakref.WeakSet[BackgroundWork[Any]] = weakref.WeakSet()
_threads = _Threads(_MOST_AT_ONCE)


def _after_fork_in_child() -> None:
    _threads.forget()
    for work in list(_unfinished):
        if not work.done():
            work.lose()


os.register_at_fork(after_in_child=_after_fork_in_child)


def load_in_background(prepared: PreparedLoad) -> LoadFuture[CompiledModule]:
    """Start a load, and return at once."""
    future: LoadFuture[CompiledModule] = LoadFuture(prepared.request.name)
    future.start(prepared.run)
    return future
