# SPDX-License-Identifier: Apache-2.0
"""Loading a kernel again whenever one of its files changes."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from kernix import _core
from kernix._errors import short_errors, warning_listener
from kernix.loading.console import input_listener, write_to
from kernix.loading.load import CPP_PATTERNS, CUDA_PATTERNS, files_in, prepare
from kernix.loading.module import CompiledModule, origin_in_words
from kernix.loading.request import Functions

_Path = str | os.PathLike[str]

_INTERVAL_S = 0.2


class Watch:
    """A kernel that a thread loads again when its files change. :func:`kernix.watch` returns it.

    It ends with :meth:`stop`, with the ``with`` block that it is used in, or with the process.
    """

    __module__ = "kernix"

    def __init__(self, label: str, load: Callable[[], CompiledModule], sources: Callable[[], list[str]]) -> None:
        self._label = label
        self._load = load
        self._sources = sources
        self._inputs: list[bytes] = []  # what else the latest load depends on
        self._module = load()
        self._error: Exception | None = None
        self._failed = False
        self._seen = _core.SeenFiles()  # by the latest load that failed
        self._warnings: list[str] = []  # of the load that is under way
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"kernix.watch {label}", daemon=True)
        self._thread.start()

    @property
    def module(self) -> CompiledModule:
        """The module of the latest load that succeeded."""
        return self._module

    @property
    def error(self) -> Exception | None:
        """The error of the latest load, or None if it succeeded."""
        return self._error

    def wait(self) -> None:
        """Wait until another thread calls :meth:`stop`, or for Ctrl-C, which stops, too."""
        try:
            self._stopped.wait()
        except KeyboardInterrupt:
            self.stop()

    def stop(self) -> None:
        """End the watch, after a load that is under way. The latest module stays live."""
        self._stopped.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        input_listener.set(self._note_inputs)  # for this thread
        warning_listener.set(self._warnings.append)
        while not self._stopped.wait(_INTERVAL_S):
            try:
                changed = self._seen.changed(self._paths())
                if changed or not self._failed:
                    self._failed = not self._load_again()
                    if self._failed:
                        self._seen.note_load(self._paths())
            except Exception as error:  # a folder that cannot be read just now
                self._fail(error)

    def _note_inputs(self, inputs: list[bytes]) -> None:
        self._inputs = inputs

    def _paths(self) -> list[bytes]:
        return [*map(os.fsencode, self._sources()), *self._inputs]

    def _load_again(self) -> bool:
        """Load, and report what has changed. A load whose files are as they were costs microseconds."""
        self._warnings.clear()
        try:
            module = self._load()
        except Exception as error:
            self._fail(error)
            return False
        news = module.content_hash != self._module.content_hash or self._error is not None
        self._module = module
        self._error = None
        if news:
            for line in (*self._warnings, f"live, {origin_in_words(module._code.core)}"):
                self._report(line)
        return True

    def _fail(self, error: Exception) -> None:
        if repr(error) != repr(self._error):
            self._report(f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")
        self._error = error

    def _report(self, text: str) -> None:
        write_to(sys.stderr, f"kernix: {self._label}: {text}\n")


@short_errors
def watch(
    path: _Path | Sequence[_Path], functions: Functions = None, *, name: str | None = None, **options: Any
) -> Watch:
    """Load kernels from files, and again with ``replace=True`` whenever a file or a header of theirs changes.

    The new code is live at once, also inside functions that ``jax.jit`` has compiled. For each change, ``sys.stderr``
    gets its warnings and its outcome. If a load fails, the earlier code stays live.

    Parameters
    ----------
    path : str or path-like, or a list of them
        A file, several files, or a folder. A ``.cu`` file among them makes it a load of CUDA, else it is C++.
    functions, name, **options
        As for :func:`load_cuda_file`, :func:`load_cuda_dir`, :func:`load_cpp_file` and :func:`load_cpp_dir`, except
        ``replace``, ``force_rebuild``, ``verbose``, ``build_directory`` and ``wait``.

    Returns
    -------
    Watch
        ``watch(...).wait()`` waits for Ctrl-C; ``.module`` is the latest module, ``.stop()`` ends the watch.

    Raises
    ------
    KernelError, OSError
        If the first load fails.
    """
    for option in ("replace", "force_rebuild", "verbose", "build_directory", "wait"):
        if option in options:
            raise TypeError(f"watch() decides itself when to load, and loads often: leave out {option}")

    def sources() -> list[str]:
        return _sources(path, options.get("file_patterns"))

    what = "directory" if isinstance(path, (str, os.PathLike)) and os.path.isdir(path) else "path"

    def load() -> CompiledModule:
        return prepare(what, None, {what: path, "functions": functions, "name": name, "replace": True, **options}).run()

    label = name or ", ".join(os.path.basename(os.path.abspath(one)) for one in _paths(path))
    return Watch(label, load, sources)


def _paths(path: _Path | Sequence[_Path]) -> list[_Path]:
    return [path] if isinstance(path, (str, os.PathLike)) else list(path)


def _sources(path: _Path | Sequence[_Path], file_patterns: Sequence[str] | None) -> list[str]:
    """Return the absolute paths of all sources that a load of `path` may compile."""
    if isinstance(path, (str, os.PathLike)) and os.path.isdir(path):
        return [os.path.abspath(file) for file in files_in(path, file_patterns, (*CUDA_PATTERNS, *CPP_PATTERNS))]
    return [os.path.abspath(one) for one in _paths(path)]
