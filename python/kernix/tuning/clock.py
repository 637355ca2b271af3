# SPDX-License-Identifier: Apache-2.0
"""What measures calls on the CPU, and what spoils it. That of a GPU is in ``driver``."""

from __future__ import annotations

import functools
import pathlib
import time
from collections.abc import Callable

__all__ = ["Clock", "processor_cache_bytes", "wall_clock"]

_CACHES = pathlib.Path("/sys/devices/system/cpu/cpu0/cache")
_USUAL_CACHE_BYTES = 32 << 20
_MOST_CACHE_BYTES = 64 << 20  # a cache for many processors; one fills no more of it while it calls a kernel

#: Returns the seconds that a number of calls took together.
Clock = Callable[[Callable[[], None], int], float]


def wall_clock(call: Callable[[], None], count: int) -> float:
    """Return the seconds that calls on the CPU take."""
    begin = time.perf_counter()
    for _ in range(count):
        call()
    return time.perf_counter() - begin


@functools.cache
def processor_cache_bytes() -> int:
    """Return the size of the processor's largest cache, or a usual one if the system does not tell."""
    try:
        sizes = [int(file.read_text().strip().removesuffix("K")) << 10 for file in _CACHES.glob("index*/size")]
    except (OSError, ValueError):
        sizes = []
    return min(max(sizes, default=_USUAL_CACHE_BYTES), _MOST_CACHE_BYTES)
