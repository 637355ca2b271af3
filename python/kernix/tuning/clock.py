# SPDX-License-Identifier: Apache-2.0
"""What measures calls. That of a GPU is in ``driver``."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["Clock", "wall_clock"]

#: Returns the seconds that a number of calls took together.
Clock = Callable[[Callable[[], None], int], float]


def wall_clock(call: Callable[[], None], count: int) -> float:
    """Return the seconds that calls on the CPU take."""
    begin = time.perf_counter()
    for _ in range(count):
        call()
    return time.perf_counter() - begin
