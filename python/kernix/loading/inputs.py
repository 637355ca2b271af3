# SPDX-License-Identifier: Apache-2.0
"""What a load depends on in the file system, besides its source texts."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

__all__ = ["Inputs", "Stamp", "stamp"]

#: What tells whether a file or folder has changed: None for one that does not exist.
Stamp = tuple[int, int, int, int, int] | None

# File systems take their times from a clock that lags by up to a tick.
_CLOCK_LAG_NS = 20_000_000


def stamp(path: str) -> Stamp:
    """Return what `path` looks like now."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


class Inputs:
    """The files and folders of one load. Make it before the load begins.

    Parameters
    ----------
    include_paths : sequence of str
        Folders that the user named, whether they exist or not.
    """

    def __init__(self, include_paths: Sequence[str]) -> None:
        self._begin = time.time_ns() - _CLOCK_LAG_NS
        self._paths = set(include_paths)
        self._found: set[str] = set()

    def add(self, folders: Sequence[str], headers: Sequence[str]) -> None:
        """Take note of where headers are looked up, in order, and of those that the sources can reach.

        A header that appears in an earlier folder would hide one that was found. It changes the time of the folder that
        it appears in: so those that could hold it count too.
        """
        self._found.update(folders, headers)
        roots = [folder.rstrip(os.sep) + os.sep for folder in folders]
        # Of thousands of headers, most lie in folders that others lie in, too.
        places = {os.path.dirname(header) for header in headers}
        for place in places:
            below = next((root for root in roots if (place + os.sep).startswith(root)), None)
            if below is not None:
                self._paths.update(os.path.join(folder, place[len(below) :]) for folder in folders)

    def stamps(self) -> list[tuple[str, Stamp]] | None:
        """Return what all of it looks like now, or None if something may have changed since the load began."""
        stamps = {path: stamp(path) for path in self._paths | self._found}
        young = any(then is not None and then[4] >= self._begin for then in stamps.values())
        gone = any(stamps[path] is None for path in self._found)
        return None if young or gone else list(stamps.items())
