# SPDX-License-Identifier: Apache-2.0
"""Loads that this process has done already.

Loading the same thing again is a no-op, and has to cost next to nothing: no daemon is asked. An entry holds as long as
everything that the load depended on is as it was: all arguments, the environment, the store, and the files it read.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple

from kernix._lock import ForkSafeLock
from kernix.loading.inputs import Stamp, stamp
from kernix.loading.module import CompiledModule

__all__ = ["Memo", "memo"]


class _Entry(NamedTuple):
    module: CompiledModule
    stamps: tuple[tuple[str, Stamp], ...]


class Memo:
    """A table of finished loads. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = ForkSafeLock()
        self._entries: dict[Hashable, _Entry] = {}
        self._generation = 0

    @property
    def generation(self) -> int:
        """How often everything was forgotten."""
        return self._generation

    def find(self, key: Hashable) -> CompiledModule | None:
        """Return the module that was remembered for `key`, unless a file that it was made from has changed."""
        entry = self._entries.get(key)
        if entry is None or any(stamp(path) != then for path, then in entry.stamps):
            return None
        return entry.module

    def remember(
        self, key: Hashable, module: CompiledModule, stamps: Iterable[tuple[str, Stamp]], generation: int
    ) -> None:
        """Remember a load that began at `generation`; what was forgotten meanwhile stays forgotten.

        Parameters
        ----------
        key : hashable
            All arguments of the load and all else that it depends on.
        module : CompiledModule
            Its result.
        stamps : iterable of (path, stamp)
            Files that it read, as they were before it began.
        generation : int
            Of this memo, read before the load began.
        """
        with self._lock:
            if generation == self._generation:
                self._entries[key] = _Entry(module, tuple(stamps))

    def forget(self) -> None:
        """Forget everything: the cache has changed, so the same load may now come to something else."""
        with self._lock:
            self._generation += 1
            self._entries.clear()


#: Loads of this process.
memo = Memo()
