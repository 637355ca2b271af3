# SPDX-License-Identifier: Apache-2.0
"""The search for the fastest variant: each is judged and timed as it arrives, while others compile."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from concurrent.futures import FIRST_COMPLETED
from concurrent.futures import wait as wait_for
from contextlib import closing
from typing import Any

from kernix._errors import (
    KernelCallError,
    KernelCompilationError,
    KernelError,
    KernelLoadError,
    KernelRequestError,
    KernelResourceError,
    add_note,
)
from kernix.calling.function import KernelFunction
from kernix.loading.background import BackgroundFetch
from kernix.loading.console import SharedLine, bar, line_of_context
from kernix.loading.module import CompiledModule
from kernix.tuning.arrays import Arrays, Clock
from kernix.tuning.check import why_wrong
from kernix.tuning.driver import KernelNeverEndsError
from kernix.tuning.fit import fit_of
from kernix.tuning.measure import Timing, measure, measure_in_turn
from kernix.tuning.result import KernelTuningError, TuningRow, TuningTable, nothing_found, shown_seconds
from kernix.tuning.source import Plan, only_function
from kernix.tuning.space import shown_settings

_LOOK_SECONDS = 0.1
_PROGRESS_AFTER_SECONDS = 1.0
_MOST_FINALISTS = 16
_FINALIST_WITHIN = 1.25  # of the best
_OF_VARIANT = (KernelCompilationError, KernelRequestError, KernelLoadError)  # a load's errors that another may not have


class Search:
    """One search.

    Parameters
    ----------
    plan : Plan
        What to search.
    arrays : Arrays or None
        What to call the variants with. None: only compile.
    """

    def __init__(self, plan: Plan, arrays: Arrays | None) -> None:
        self._plan = plan
        self._arrays = arrays
        self._rows: dict[int, TuningRow] = {}
        self._timings: dict[int, Timing] = {}
        self._modules: dict[int, CompiledModule] = {}  # of the variants that were timed
        self._finalists: list[int] = []  # of the last round, in which nothing compiled
        self._groups = _with_same_macros(plan)
        self._loads: dict[int, BackgroundFetch] = {}  # of the variants that have a module
        self._line = SharedLine(line_of_context())
        self._began = time.monotonic()

    def run(self) -> TuningTable:
        """Compile all variants, and time them unless there are no arrays. Return what was found out."""
        try:
            if self._arrays is None:
                self._judge_all(None)
            else:
                with self._arrays.clock() as clock:
                    self._judge_all(clock)
                    self._line.erase()
                    self._time_again(clock)
        except KeyboardInterrupt as stop:
            if self._rows:
                add_note(stop, f"{self._plan.source.name}: stopped after\n{self._table()}")
            raise
        finally:
            self._line.end()
        return self._table()

    def winner(self) -> int:
        """Return the number of the fastest variant. Its load's warnings are issued now."""
        if not self._timings:
            raise nothing_found(self._plan.source.name, self._table())
        best = self._best()
        self._loads[best].give_warnings()
        return best

    def _judge_all(self, clock: Clock | None) -> None:
        with closing(self._ended_loads()) as loads:
            for group, load in loads:
                self._judge_group(group, load, clock)

    def _ended_loads(self) -> Generator[tuple[Sequence[int], BackgroundFetch | KernelError]]:
        """Run the loads, and yield each when it has ended, or why it could not begin, with its variants.

        A bounded number is under way. Shows the progress. Closing the iterator cancels what still runs.
        """
        waiting = iter(self._groups)
        running: dict[BackgroundFetch, Sequence[int]] = {}
        ended: list[tuple[Sequence[int], BackgroundFetch | KernelError]] = []
        try:
            while True:
                while len(running) < self._plan.at_once and (group := next(waiting, None)) is not None:
                    macros = self._plan.space.defines(self._plan.variants[group[0]])
                    try:
                        running[BackgroundFetch(self._plan.source.load_of_variant(macros), self._line)] = group
                    except KernelError as error:
                        ended.append((group, error))
                for each in ended:  # after their successors have begun
                    yield each
                    self._show_progress()
                if not running:
                    return
                wait_for(running, _LOOK_SECONDS, FIRST_COMPLETED)
                ended = [(running.pop(load), load) for load in list(running) if load.done()]
                self._show_progress()
        finally:
            for load in running:
                load.cancel()
            wait_for(running)

    def _judge_group(self, group: Sequence[int], load: BackgroundFetch | KernelError, clock: Clock | None) -> None:
        """Judge the variants of a load that has ended."""
        try:
            if isinstance(load, KernelError):
                raise load
            module = load.module()
        except (*_OF_VARIANT, KernelResourceError) as error:
            outcome = "not built" if isinstance(error, KernelResourceError) else "does not compile"
            for number in group:
                self._note(number, outcome, reason=_in_a_line(error))
            return
        for number in group:
            self._loads[number] = load
            self._judge(number, module, clock)

    def _judge(self, number: int, module: CompiledModule, clock: Clock | None) -> None:
        """Find out about one variant."""
        function = only_function(module, self._plan.function)
        fit = fit_of(module, function, self._plan.attributes[number], self._plan.allow_spills)
        if fit.outcome:
            self._note(number, fit.outcome, reason=fit.reason, **fit.numbers)
        elif clock is None or self._arrays is None:
            self._note(number, "compiled", **fit.numbers)
        else:
            self._note(number, "", **fit.numbers)
            self._check_and_time(number, module[function], self._arrays, clock)
            self._modules[number] = module

    def _check_and_time(self, number: int, function: KernelFunction, arrays: Arrays, clock: Clock) -> None:
        try:
            results = arrays.results_of(function, self._plan.attributes[number], clock)
        except (KernelCallError, ValueError) as error:
            self._note_failure(number, error, arrays)
            return
        if reason := why_wrong(self._plan.check, results):
            self._note(number, "wrong", reason=reason)
            return
        best = self._timings[self._best()].median if self._timings else None
        try:
            self._timings[number] = measure(arrays.calls_to_time(function, self._plan.attributes[number]), clock, best)
        except KernelCallError as error:
            self._note_failure(number, error, arrays)

    def _time_again(self, clock: Clock) -> None:
        """Time those that may be the fastest by turns, now that nothing compiles."""
        lows = {number: min(timing.samples) for number, timing in self._timings.items()}
        if not lows or self._arrays is None:
            return
        near = sorted((low, number) for number, low in lows.items() if low <= _FINALIST_WITHIN * min(lows.values()))
        finalists = [number for _, number in near[:_MOST_FINALISTS]]
        calls = {number: self._arrays.calls_to_time(*self._call(number)) for number in finalists}
        for number, timing in measure_in_turn(calls, clock, self._plan.repeats).items():
            if isinstance(timing, Timing):
                self._timings[number] = timing
                self._finalists.append(number)
            else:
                del self._timings[number]
                self._note_failure(number, timing, self._arrays)

    def _call(self, number: int) -> tuple[KernelFunction, dict[str, Any]]:
        """Return the function of a variant that was timed, and what its calls take."""
        module = self._modules[number]
        return module[only_function(module, self._plan.function)], self._plan.attributes[number]

    def _note_failure(self, number: int, failure: Exception, arrays: Arrays) -> None:
        """Note why a variant's call failed. End the search if that has left the GPU's context unusable."""
        self._note(number, "failed", reason=_in_a_line(failure))
        if isinstance(failure, KernelNeverEndsError):
            raise self._lost(number, str(failure)) from None
        try:
            arrays.wait()
        except KernelError as error:
            raise self._lost(number, f"has crashed on the GPU ({error})") from None

    def _lost(self, number: int, why: str) -> KernelTuningError:
        """Make the error about a variant after which this process cannot use the GPU."""
        which = shown_settings(self._plan.variants[number])
        return KernelTuningError(
            f"{self._plan.source.name}: the variant {which} {why}; this process cannot use the GPU any more. Leave it "
            f"out of the space. {len(self._timings)} variants were timed before: see the error's .table",
            self._table(),
        )

    def _note(self, number: int, outcome: str, **found: Any) -> None:
        known = self._rows.get(number) or TuningRow(self._plan.variants[number], "")
        self._rows[number] = known._replace(outcome=outcome, **found)

    def _table(self) -> TuningTable:
        """Return the rows of all variants that were judged."""
        if self._timings:
            best = self._timings[self._best()]
            for number, timing in self._timings.items():
                self._note(number, _outcome(timing, best), **_figures(timing))
        return TuningTable(self._rows[number] for number in sorted(self._rows))

    def _best(self) -> int:
        """Return the fastest of the last round or, before it, of all."""
        return min(self._finalists or self._timings, key=lambda number: self._timings[number].median)

    def _show_progress(self) -> None:
        seconds = time.monotonic() - self._began
        if seconds < _PROGRESS_AFTER_SECONDS:
            return
        done, total = len(self._rows), len(self._plan.variants)
        text = f"kernix: tuning {self._plan.source.name}: {bar(done, total)} {done} of {total} variants"
        if self._timings:
            best = self._best()
            shown = shown_settings(self._plan.variants[best])
            text += f", best {shown_seconds(self._timings[best].median)} with {shown}"
        self._line.show(f"{text}, {seconds:.0f} s")


def _with_same_macros(plan: Plan) -> list[list[int]]:
    """Return the numbers of variants that share a module, in the order of the first of each."""
    groups: dict[str, list[int]] = {}
    for number, settings in enumerate(plan.variants):
        groups.setdefault(repr(plan.space.defines(settings)), []).append(number)
    return list(groups.values())


def _outcome(timing: Timing, best: Timing) -> str:
    if timing is best:
        return "best"
    if timing.cut_short:
        return "cut short"
    return "tied" if timing.quartiles[0] <= best.quartiles[1] else "slower"


def _figures(timing: Timing) -> dict[str, Any]:
    low, high = timing.quartiles
    return {"seconds": timing.median, "low": low, "high": high, "repeats": len(timing.samples)}


def _in_a_line(error: Exception) -> str:
    """Return the compiler's first line about an error, or else the first line of a message."""
    lines = str(getattr(error, "compiler_output", "")).splitlines()
    return next((line for line in lines if "error" in line), str(error).partition("\n")[0])
