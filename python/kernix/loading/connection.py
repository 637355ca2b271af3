# SPDX-License-Identifier: Apache-2.0
"""The client of this process, created on first use and again when the environment changes, and what is behind it."""

from __future__ import annotations

import os
import sys

from kernix import _core, _environment
from kernix._errors import KernelDaemonError, KernelResourceError, short_errors
from kernix._lock import ForkSafeLock
from kernix.loading.module import forget_modules
from kernix.loading.request import check_text, folder_path

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
            _client = _core.Client(store_directory=key[0], site_packages=folders, program=_program())
            _client_key = key
        return _client


def _program() -> bytes:
    """Return the path of the script that runs, or ``b""`` in a REPL or a notebook, and with ``python -c``."""
    path = getattr(sys.modules.get("__main__"), "__file__", None)
    if not isinstance(path, str) or path.startswith("<"):  # "<stdin>"
        return b""
    return os.path.abspath(os.fsencode(path))


@short_errors
def clear_cache(name: str | None = None) -> int:
    """Remove compiled kernels from the cache, but no pinned ones. Modules that this process has loaded stay loaded.

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
    removed = client().purge(check_text("clear_cache: the name", name or ""))
    forget_modules()
    return removed


@short_errors
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
    given = check_text("set_cache_dir: the path", folder_path(path, "set_cache_dir"))
    directories = [os.path.abspath(os.path.expanduser(part)) for part in given.split(os.pathsep)]
    try:
        os.makedirs(directories[0], exist_ok=True)
    except OSError as error:
        raise KernelResourceError(f"cannot use {directories[0]} as cache: {error.strerror or error}") from error
    use_store(os.pathsep.join(directories))


@short_errors
def get_cache_dir() -> str:
    """Return the folder of compiled kernels.

    Returns
    -------
    str
        The folder of :func:`set_cache_dir`, else the running daemon's store, else the store that a daemon would use.
    """
    if store_override():
        return store_override().split(os.pathsep)[0]
    try:
        return client().info(start=False).store_directory
    except KernelDaemonError:
        return _core.default_store_directory()


def print_diagnostics() -> None:
    """Print to ``sys.stdout`` what ``kernixctl doctor`` finds, and the targets that JAX knows.

    It examines compilers, GPU, daemon and store, and compiles small kernels. It starts a daemon if none is running.
    ``python -m kernix`` examines Python and JAX, too.
    """
    from kernix.jax.targets import list_registered_targets

    print(doctor()[1], end="")
    print(f"{'':<6}{'targets':<14}{', '.join(list_registered_targets()) or 'none registered'}")


def doctor() -> tuple[int, str]:
    """Run ``kernixctl doctor`` for the store of this process. Return its exit code and its lines."""
    import subprocess  # here: it would make `import kernix` slower

    program = _environment.program("kernixctl")
    if not program:
        return 1, "fail  kernixctl     this installation of kernix lacks it: install kernix again\n"
    store = ["--store", store_override()] if store_override() else []
    command = [program, *store, "doctor"]
    environment = _environment.for_kernixctl()
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    return done.returncode, done.stdout
