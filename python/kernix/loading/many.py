# SPDX-License-Identifier: Apache-2.0
"""Many loads side by side."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from typing import Any, NamedTuple

from kernix import _core
from kernix._errors import KernelError, KernelRequestError, short_errors
from kernix._lock import ForkSafeLock
from kernix.loading.background import BackgroundWork, start
from kernix.loading.console import ProgressLine, default_line, progress_line, write_to
from kernix.loading.load import (
    CPP_PATTERNS,
    CUDA_PATTERNS,
    files_in,
    folder_name,
    prepare_cpp,
    prepare_cuda,
    sources_in,
)
from kernix.loading.module import CompiledModule
from kernix.loading.one_load import Fetched, PreparedLoad
from kernix.loading.request import file_sources, inline_sources, module_name, stem

__all__ = ["KernelBatchError", "LoadReport", "LoadedModules", "load_many"]

_LOOK_SECONDS = 0.1
_PROGRESS_AFTER_SECONDS = 1.0

#: The parameter that says what a load compiles.
_WHAT = ("cuda_sources", "cpp_sources", "path", "directory")


class LoadReport(NamedTuple):
    """What became of one load of :func:`kernix.load_many`.

    Attributes
    ----------
    name : str
        Name of the module; of a load that was refused, what it should compile.
    origin : str
        Where the module comes from: ``"process"`` (it was loaded already), ``"cache"``, ``"upstream"`` (another
        node had built it), ``"built"``, ``"joined"`` (the load waited for a build that another load had started), or
        ``"failed"``.
    seconds : float
        How long the load took, from the start of its thread to its end.
    build_ms : int
        How long the build took; 0 if there was none.
    reason : str
        Why a build was needed, or why the load failed. Empty otherwise.
    """

    name: str
    origin: str
    seconds: float = 0.0
    build_ms: int = 0
    reason: str = ""

    def __str__(self) -> str:
        reason = f": {self.reason}" if self.reason else ""
        return f"{self.name}: {self.origin}, {self.seconds:.2f} s{reason}"


class LoadedModules(list[CompiledModule]):
    """The modules of :func:`kernix.load_many`, in the order of the loads.

    Attributes
    ----------
    report : list of LoadReport
        For each load, where its module comes from, and how long that took.
    """

    __module__ = "kernix"

    def __init__(self, modules: Iterable[CompiledModule], report: Sequence[LoadReport]) -> None:
        super().__init__(modules)
        self.report = list(report)


class KernelBatchError(KernelError, ExceptionGroup[Exception]):
    """Some loads of :func:`kernix.load_many` failed.

    It is a group with the error of each (``except*`` takes it apart), and a :class:`KernelError`.

    Attributes
    ----------
    modules : list
        What :func:`kernix.load_many` would have returned, with None for each load that failed.
    report : list of LoadReport
        For each load, what became of it.
    """

    __module__ = "kernix"

    modules: list[CompiledModule | None]
    report: list[LoadReport]

    def __new__(
        cls,
        message: str,
        errors: Sequence[Exception],
        modules: Sequence[CompiledModule | None] = (),
        report: Sequence[LoadReport] = (),
    ) -> KernelBatchError:
        """Make the group; see the class."""
        self = super().__new__(cls, message, errors)
        self.modules = list(modules)
        self.report = list(report)
        return self

    def __init__(self, message: str, errors: Sequence[Exception], *_: object) -> None:
        super().__init__(message, errors)

    def derive(self, errors: Sequence[Exception], /) -> KernelBatchError:  # type: ignore[override]
        """Return the same with a part of the errors."""
        return KernelBatchError(self.message, errors, self.modules, self.report)


LoadReport.__module__ = "kernix"


class _Timed(NamedTuple):
    fetched: Fetched
    seconds: float


class _OneOfMany:
    """One load of a batch.

    Parameters
    ----------
    label : str
        What it is, until its module's name is known.
    """

    def __init__(self, label: str) -> None:
        self.name = label
        self.error: Exception | None = None
        self.module: CompiledModule | None = None
        self.work: BackgroundWork[_Timed] | None = None
        self._prepared: PreparedLoad | None = None
        self._fetched: _Timed | None = None

    def prepare(self, make: Callable[[], PreparedLoad]) -> None:
        try:
            self._prepared = make()
        except TypeError:
            raise  # a mistake in the call, not in a kernel
        except Exception as error:
            self.error = error
        else:
            self._prepared.request.batch = True
            self.name = self._prepared.request.name

    def start(self, line: ProgressLine) -> None:
        if self._prepared is None:
            return
        fetch = self._prepared.fetch

        def timed() -> _Timed:
            began = time.monotonic()
            return _Timed(fetch(), time.monotonic() - began)

        self.work = BackgroundWork(self.name)
        start(self.work, timed, line)

    def finish(self) -> None:
        """Deliver the module. Called when the work has ended, in the thread of the caller."""
        if self.work is None or self._prepared is None:
            return
        try:
            self._fetched = self.work.result()
            self.module = self._prepared.deliver(self._fetched.fetched)
        except Exception as error:
            self.error = error
        self.work.give_warnings()

    def report(self) -> LoadReport:
        seconds = 0.0 if self._fetched is None else self._fetched.seconds
        if self.error is not None:
            return LoadReport(self.name, "failed", seconds, reason=_in_a_line(self.error))
        assert self._fetched is not None
        fetched = self._fetched.fetched
        if fetched.is_known:
            return LoadReport(self.name, "process", seconds)
        core = fetched.core
        return LoadReport(self.name, _origin_of(core), seconds, core.build_ms, core.miss_reason)


def _origin_of(core: _core.Module) -> str:
    if core.from_upstream:
        return "upstream"
    return "cache" if core.cache_hit else "joined" if core.joined else "built"


class _SharedLine:
    """The one progress line of a batch. Its loads only make room for their output."""

    def __init__(self, line: ProgressLine | None) -> None:
        self._line = line
        self._lock = ForkSafeLock()

    def show(self, text: str) -> None:
        """Draw, in the thread of the caller."""
        if self._line is not None:
            with self._lock:
                self._line.draw(text)

    def end(self) -> None:
        """Give the line back."""
        if self._line is not None:
            with self._lock:
                self._line.close()

    def draw(self, text: str) -> None:
        """Show nothing of a single load."""

    def erase(self) -> None:
        """Make room for output of one of the loads."""
        if self._line is not None:
            with self._lock:
                self._line.erase()

    def close(self) -> None:
        """Leave the line to the other loads."""


@short_errors
def load_many(
    loads: Iterable[Mapping[str, Any] | str | os.PathLike[str]], *, verbose: bool = False, **options: Any
) -> LoadedModules:
    """Compile and load many kernels side by side.

    All loads go on until their end, whatever becomes of the others. Functions are registered with JAX in the order of
    the loads, after all have ended. On a terminal, one line shows how far they are. Ctrl-C cancels what is left.

    Parameters
    ----------
    loads : list
        For each module the keyword parameters of its load, as a dict. One of them says what to compile, and so which
        function's parameters these are: ``cuda_sources`` (:func:`load_cuda_inline`), ``cpp_sources``
        (:func:`load_cpp_inline`), ``path`` (:func:`load_cuda_file` if one of the files ends in ``.cu``, else
        :func:`load_cpp_file`), or ``directory`` (:func:`load_cuda_dir` if it has such files, else
        :func:`load_cpp_dir`). A path stands for ``{"path": path}``.
    verbose : bool, default False
        Print commands and compiler output to ``sys.stderr`` as they arrive, and the report at the end.
    **options
        Parameters of all loads. Those of a load itself count more.

    Returns
    -------
    LoadedModules
        A list of modules in the order of the loads. Its ``report`` says where each comes from.

    Raises
    ------
    KernelBatchError
        If loads failed. It has the error of each, and the modules of the others.
    TypeError
        If there is no such parameter. Nothing has been compiled then.
    """
    if isinstance(loads, (str, bytes, Mapping, os.PathLike)):
        raise TypeError(f"loads must be a list with an element for each module, not {loads!r}")
    batch = [_prepared(index, load, {"verbose": verbose, **options}) for index, load in enumerate(loads)]
    line = _SharedLine(progress_line.get() or default_line(sys.stderr))
    try:
        for one in batch:
            one.start(line)
        _await(batch, line)
    except BaseException:
        _cancel(batch)
        raise
    finally:
        line.end()
    for one in batch:
        one.finish()
    report = [one.report() for one in batch]
    if verbose:
        write_to(sys.stderr, "".join(f"kernix: {one}\n" for one in report))
    modules = [one.module for one in batch]
    errors = [one.error for one in batch if one.error is not None]
    if errors:
        raise KernelBatchError(_summary(batch), errors, modules, report)
    return LoadedModules((module for module in modules if module is not None), report)


def _prepared(index: int, load: Mapping[str, Any] | str | os.PathLike[str], options: Mapping[str, Any]) -> _OneOfMany:
    parameters = {**options, **(load if isinstance(load, Mapping) else {"path": load})}
    what = [name for name in _WHAT if name in parameters]
    if len(what) != 1:
        found = " and ".join(what) or "none of them"
        raise TypeError(f"load {index} must have one of {', '.join(_WHAT)}; it has {found}")
    one = _OneOfMany(str(parameters.get("name") or parameters[what[0]]).partition("\n")[0])
    try:
        one.prepare(lambda: _prepare(what[0], **parameters))
    except TypeError as error:
        error.add_note(f"in load_many(): load {index}")
        raise
    return one


def _prepare(what: str, *, functions: Any = None, name: str | None = None, **parameters: Any) -> PreparedLoad:
    value = parameters.pop(what)
    if what in ("cuda_sources", "cpp_sources"):
        if name is None:
            raise KernelRequestError(f"a load of {what} needs a name")
        sources = inline_sources(value, name, what)
        prepare = prepare_cuda if what == "cuda_sources" else prepare_cpp
        return prepare(sources, functions, name=name, **parameters)
    if what == "path":
        sources = file_sources(value)
        prepare = prepare_cuda if any(source.path.endswith(".cu") for source in sources) else prepare_cpp
        return prepare(sources, functions, name=module_name(name, stem(sources)), **parameters)
    patterns = parameters.pop("file_patterns", None)
    is_cuda = any(path.endswith(".cu") for path in files_in(value, patterns, (*CUDA_PATTERNS, *CPP_PATTERNS)))
    sources = sources_in(value, patterns, CUDA_PATTERNS if is_cuda else CPP_PATTERNS)
    prepare = prepare_cuda if is_cuda else prepare_cpp
    return prepare(sources, functions, name=module_name(name, folder_name(value)), **parameters)


def _await(batch: Sequence[_OneOfMany], line: _SharedLine) -> None:
    """Wait until all have ended, and show how far they are."""
    began = time.monotonic()
    left: set[Future[_Timed]] = {one.work for one in batch if one.work is not None}
    while left:
        left = wait(left, timeout=_LOOK_SECONDS).not_done
        seconds = time.monotonic() - began
        if left and seconds >= _PROGRESS_AFTER_SECONDS:
            line.show(f"kernix: {_progress(batch)}, {seconds:.0f} s")


def _progress(batch: Sequence[_OneOfMany]) -> str:
    ended = [one for one in batch if one.work is None or one.work.done()]
    failed = sum(one.work is None or one.work.exception() is not None for one in ended)
    running = [one.work for one in batch if one.work is not None and one.work.running()]
    texts = [f"{len(ended)} of {len(batch)} loads done"]
    if failed:
        texts.append(f"{failed} failed")
    if running:
        texts.append(f"{running[0].name}: {running[0].progress}")
    return ", ".join(texts)


def _cancel(batch: Sequence[_OneOfMany]) -> None:
    works = [one.work for one in batch if one.work is not None]
    for work in works:
        work.cancel()
    wait(works)


def _summary(batch: Sequence[_OneOfMany]) -> str:
    failed = [(index, one.error) for index, one in enumerate(batch) if one.error is not None]
    lines = [f"load {index}, {batch[index].name}: {_in_a_line(error)}" for index, error in failed]
    return "\n  ".join([f"{len(failed)} of {len(batch)} loads failed:", *lines])


def _in_a_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
