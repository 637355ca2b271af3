# SPDX-License-Identifier: Apache-2.0
"""How long calls take: many repeats, their median and spread."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from kernix._errors import KernelCallError
from kernix.tuning.arrays import Clock
from kernix.tuning.driver import KernelNeverEndsError

# A measurement is of as many calls as take this long, because clocks and Python cost up to a microsecond.
_SAMPLE_S = 2e-4
_FEWEST, _MOST = 3, 10  # measurements of a variant while others compile
_ENOUGH_S = 0.005  # no more measurements after this time
_CUT_AT = 2.0  # times the best known
_CUT_AT_ONCE_AT = 20.0  # after a single call
_ROUND_S = 1.0  # for all measurements of the last round
_FEWEST_ROUNDS = 5


class Timing(NamedTuple):
    """The measurements of a variant, in seconds for one call."""

    samples: Sequence[float]
    cut_short: bool = False

    @property
    def median(self) -> float:
        """The median."""
        return statistics.median(self.samples)

    @property
    def quartiles(self) -> tuple[float, float]:
        """The values between which half of the measurements lie."""
        if len(self.samples) < 2:
            return self.samples[0], self.samples[0]
        low, _, high = statistics.quantiles(self.samples, n=4, method="inclusive")
        return low, high


def measure(call: Callable[[], None], clock: Clock, best: float | None) -> Timing:
    """Time a call that has been made before. Stop after few measurements if it takes much longer than `best`."""
    once = clock(call, 1)
    if best is not None and once > _CUT_AT_ONCE_AT * best and once > _SAMPLE_S:
        return Timing([once], cut_short=True)
    count = _calls_of_a_sample(once)
    samples: list[float] = []
    while len(samples) < _FEWEST or (len(samples) < _MOST and sum(samples) * count < _ENOUGH_S):
        samples.append(clock(call, count) / count)
        if len(samples) == _FEWEST and best is not None and min(samples) > _CUT_AT * best:
            return Timing(samples, cut_short=True)
    return Timing(samples)


def measure_in_turn(
    calls: Mapping[int, Callable[[], None]], clock: Clock, repeats: int
) -> dict[int, Timing | KernelCallError]:
    """Time several calls by turns, so that what slows the machine for a while slows all of them.

    A call that fails is left out from then on, and has its error instead of a timing: in the order of the failures, and
    before all timings. After one that never ends, no other is made.
    """
    failures: dict[int, KernelCallError] = {}
    samples: dict[int, list[float]] = {number: [] for number in calls}

    def seconds_of(number: int, count: int) -> float:
        if any(isinstance(failure, KernelNeverEndsError) for failure in failures.values()):
            return 0.0
        try:
            return clock(calls[number], count)
        except KernelCallError as error:
            failures[number] = error
            return 0.0

    counts = {number: _calls_of_a_sample(seconds_of(number, 1)) for number in calls}
    began = time.monotonic()
    for round_number in range(repeats):
        if round_number >= _FEWEST_ROUNDS and time.monotonic() > began + _ROUND_S:
            break
        for number in calls:
            if number not in failures:
                samples[number].append(seconds_of(number, counts[number]) / counts[number])
    return failures | {number: Timing(samples[number]) for number in calls if number not in failures}


def _calls_of_a_sample(once: float) -> int:
    return max(1, math.ceil(_SAMPLE_S / max(once, 1e-7)))
