# SPDX-License-Identifier: Apache-2.0
"""The loads of a search: a bounded number goes on in the background, and each is taken as it arrives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import wait as wait_for
from queue import Empty, SimpleQueue

from kernix._errors import KernelError
from kernix.loading.background import BackgroundWork, start
from kernix.loading.console import ProgressLine
from kernix.loading.load import Fetched, PreparedLoad
from kernix.loading.module import CompiledModule

_LOOK_SECONDS = 0.1


class Arrival:
    """A load that has ended, or could not begin.

    Parameters
    ----------
    number : int
        Which of the loads.
    outcome : tuple or KernelError
        The load and its work, or why it could not begin.
    """

    def __init__(self, number: int, outcome: tuple[PreparedLoad, BackgroundWork[Fetched]] | KernelError) -> None:
        self.number = number
        self._outcome = outcome

    def module(self) -> CompiledModule:
        """Return its module, or raise what made it fail."""
        if isinstance(self._outcome, KernelError):
            raise self._outcome
        prepared, work = self._outcome
        return prepared.deliver(work.result())

    def give_warnings(self) -> None:
        """Issue the warnings of the load. Nobody wants to read those of all variants."""
        if not isinstance(self._outcome, KernelError):
            self._outcome[1].give_warnings()


class Loads:
    """The loads numbered from 0, begun in this order. Leaving its ``with`` block cancels what still runs.

    Parameters
    ----------
    count : int
        How many there are.
    prepare : callable
        Returns a load by its number.
    most : int
        How many are under way at a time.
    line : ProgressLine
        Makes room for the output of loads.
    """

    def __init__(self, count: int, prepare: Callable[[int], PreparedLoad], most: int, line: ProgressLine) -> None:
        self._waiting = iter(range(count))
        self._prepare = prepare
        self._most = most
        self._line = line
        self._arrived: SimpleQueue[Arrival] = SimpleQueue()
        self._running: dict[int, BackgroundWork[Fetched]] = {}
        self._left = count

    def __enter__(self) -> Loads:
        return self

    def __exit__(self, *_: object) -> None:
        for work in self._running.values():
            work.cancel()
        wait_for(self._running.values())

    def arrivals(self, idle: Callable[[], None]) -> Iterator[Arrival]:
        """Run all loads, and return each when it has ended. Calls `idle` several times a second meanwhile."""
        for _ in range(self._most):
            self._start_next()
        while self._left:
            try:
                arrival = self._arrived.get(timeout=_LOOK_SECONDS)
            except Empty:
                idle()
                continue
            self._left -= 1
            self._running.pop(arrival.number, None)
            self._start_next()
            yield arrival
            idle()

    def _start_next(self) -> None:
        number = next(self._waiting, None)
        if number is None:
            return
        try:
            prepared = self._prepare(number)
        except KernelError as error:
            self._arrived.put(Arrival(number, error))
            return
        work: BackgroundWork[Fetched] = BackgroundWork(prepared.request.name)
        self._running[number] = work
        arrival = Arrival(number, (prepared, work))
        work.add_done_callback(lambda _: self._arrived.put(arrival))
        start(work, prepared.fetch, self._line)
