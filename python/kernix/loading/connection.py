# SPDX-License-Identifier: Apache-2.0
"""The client of this process, created on first use and again when the environment changes."""

from __future__ import annotations

import os
import sys

from kernix import _core
from kernix._lock import ForkSafeLock

__all__ = ["client", "latest", "store_override", "use_store"]

_lock = ForkSafeLock()
_store_override = ""  # set by set_cache_dir(); empty: the user's default store
_client: _core.Client | None = None
_client_key: tuple[str, bytes, tuple[bytes, ...]] | None = None


def store_override() -> str:
    """Return the store that :func:`use_store` chose, or ``""``."""
    return _store_override


def use_store(path: str) -> None:
    """Make `path` the store of all later loads of this process."""
    global _store_override
    _store_override = path


def latest() -> _core.Client | None:
    """Return the latest client if it is for the current store. The environment may have changed since."""
    return _client if _client_key is not None and _client_key[0] == _store_override else None


def client() -> _core.Client:
    """Return the client for the current store and environment. Does not connect yet."""
    global _client, _client_key
    # libkernix looks for NVIDIA's wheels there when a load needs some. Python ignores all but strings, too.
    folders = tuple(os.fsencode(folder) for folder in sys.path if folder and isinstance(folder, str))
    key = (_store_override, _core.environment_fingerprint(), folders)
    with _lock:
        if _client is None or key != _client_key:
            _client = _core.Client(store_directory=key[0], site_packages=folders)
            _client_key = key
        return _client
