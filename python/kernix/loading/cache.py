# SPDX-License-Identifier: Apache-2.0
"""The location of compiled kernels, and their removal."""

from __future__ import annotations

import os

from kernix import _core
from kernix._errors import KernelDaemonError, KernelResourceError
from kernix.loading import connection
from kernix.loading.one_load import forget_modules
from kernix.loading.request import check_text

__all__ = ["clear_cache", "get_cache_dir", "set_cache_dir"]


def clear_cache(name: str | None = None) -> int:
    """Remove compiled kernels from the cache. Modules that this process has loaded stay loaded.

    Parameters
    ----------
    name : str, optional
        Remove only kernels that were loaded under this module name. Default: all.

    Returns
    -------
    int
        The number of removed kernels.
    """
    if name is not None and not name:
        raise ValueError("clear_cache: the name is empty; pass None to remove everything")
    removed = connection.client().purge(check_text("clear_cache: the name", name or ""))
    forget_modules()
    return removed


def set_cache_dir(path: str | os.PathLike[str]) -> None:
    """Keep the compiled kernels of this process in a separate folder, served by a separate daemon.

    The contents of the earlier folder stay there.

    Parameters
    ----------
    path : str or path-like
        The folder. It is created if it does not exist. Folders after a colon are read, too, and never written.

    Raises
    ------
    KernelResourceError
        If the folder cannot be created.
    """
    given = check_text("set_cache_dir: the path", os.fsdecode(path))
    directories = [os.path.abspath(os.path.expanduser(part)) for part in given.split(os.pathsep)]
    try:
        os.makedirs(directories[0], exist_ok=True)
    except OSError as error:
        raise KernelResourceError(f"cannot use {directories[0]} as cache: {error.strerror or error}") from error
    connection.use_store(os.pathsep.join(directories))


def get_cache_dir() -> str:
    """Return the folder where compiled kernels are kept.

    Returns
    -------
    str
        The folder of :func:`set_cache_dir`, else the running daemon's store, else the store that a daemon would use.
    """
    if connection.store_override():
        return connection.store_override().split(os.pathsep)[0]
    try:
        return connection.client().info(start=False).store_directory
    except KernelDaemonError:
        return _core.default_store_directory()
