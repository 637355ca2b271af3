# SPDX-License-Identifier: Apache-2.0
"""A lock that survives ``os.fork``."""

from __future__ import annotations

import os
import threading


class ForkSafeLock:
    """A mutual exclusion lock that is free in a forked child, even if a thread of the parent held it.

    Use it for locks that exist until the process ends.
    """

    def __init__(self) -> None:
        self._renew()
        os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        self._lock = threading.Lock()

    def try_acquire(self) -> bool:
        """Take the lock if it is free, and return whether it was."""
        return self._lock.acquire(blocking=False)

    def release(self) -> None:
        """Release the lock."""
        self._lock.release()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
