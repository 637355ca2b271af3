# SPDX-License-Identifier: Apache-2.0
"""Many loads side by side."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from contextvars import copy_context
from typing import Any

from kernix._errors import KernelError, add_note, shortened, warning_listener
from kernix.loading.background import BackgroundFetch, LoadFuture
from kernix.loading.console import ProgressLine, SharedLine, bar, line_of_context, write_to
from kernix.loading.load import WHAT, Fetched, PreparedLoad, prepare, public_load
from kernix.loading.module import CompiledModule
from kernix.loading.report import LoadReport, in_a_line

if sys.version_info < (3, 11):
    from exceptiongroup import ExceptionGroup

_LOOK_SECONDS = 0.1
_PROGRESS_AFTER_SECONDS = 1.0


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
        For each load, its outcome.
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


class _OneOfMany:
    """One load of a batch.

    Parameters
    ----------
    what, parameters
        As for :func:`prepare`.
    """

    def __init__(self, what: str, parameters: dict[str, Any]) -> None:
        self.name = str(parameters.get("name") or parameters[what]).partition("\n")[0]  # until the module's is known
        self.error: Exception | None = None
        self.module: CompiledModule | None = None
        self.work: BackgroundFetch | None = None
        self._prepared: PreparedLoad | None = None
        try:
            self._prepared = prepare(what, None, parameters)
        except TypeError:
            raise  # a mistake in the call, not in a kernel
        except Exception as error:
            self.error = shortened(error)
        else:
            self._prepared.request.batch = True
            self.name = self._prepared.request.name

    def start(self, line: ProgressLine | None = None) -> None:
        if self._prepared is not None:
            self.work = BackgroundFetch(self._prepared, line)

    def finish(self) -> None:
        """Deliver the module. Called when all work has ended, by the thread that delivers the batch."""
        if self.work is None:
            return
        try:
            self.module = self.work.module()
        except Exception as error:
            self.error = shortened(error)
        self.work.give_warnings()

    @property
    def ended(self) -> bool:
        return self.work is None or self.work.done()

    @property
    def failed(self) -> bool:
        """Whether it has ended without a module to deliver."""
        return self.work is None or (self.ended and (self.work.cancelled() or self.work.exception() is not None))

    def report(self) -> LoadReport:
        if self.error is not None:
            seconds = 0.0 if self.work is None else self.work._seconds
            return LoadReport(self.name, "failed", seconds, reason=in_a_line(self.error))
        assert self.work is not None
        return self.work.result().report


_Loads = Iterable[Mapping[str, Any] | str | os.PathLike[str]]


@public_load
def load_many(
    loads: _Loads, *, verbose: bool = False, wait: bool = True, **options: Any
) -> LoadedModules | LoadFuture[LoadedModules]:
    """Compile and load many kernels side by side.

    If a load fails, the others go on. Functions are registered with JAX in the order of the loads, after all have
    ended. While it waits, one line on a terminal shows the progress, and Ctrl-C cancels the rest.

    Parameters
    ----------
    loads : list
        For each module the keyword parameters of its load, as a dict. One of them selects the load function:
        ``cuda_sources`` (:func:`load_cuda_inline`), ``cpp_sources`` (:func:`load_cpp_inline`), ``path``
        (:func:`load_cuda_file` if one of the files ends in ``.cu``, else :func:`load_cpp_file`), or ``directory``
        (:func:`load_cuda_dir` if it has such files, else :func:`load_cpp_dir`). A path stands for ``{"path": path}``.
    verbose : bool, default False
        Print commands and compiler output to ``sys.stderr`` as they arrive, and the report at the end.
    wait : bool, default True
        With False, return a :class:`LoadFuture` at once: the loads go on in the background, without a progress line.
    **options
        Parameters of all loads. A load's own parameters win.

    Returns
    -------
    LoadedModules or LoadFuture
        A list of modules in the order of the loads. Its ``report`` says where each comes from. With ``wait=False``, a
        future of it.

    Raises
    ------
    KernelBatchError
        If loads failed. It has the error of each, and the modules of the others. With ``wait=False``, the future's
        ``result`` raises it.
    TypeError
        If there is no such parameter. Nothing has been compiled then.
    """
    if isinstance(loads, (str, bytes, Mapping, os.PathLike)):
        raise TypeError(f"loads must be a list with an element for each module, not {loads!r}")
    batch = [_prepared(index, load, {"verbose": verbose, **options}) for index, load in enumerate(loads)]
    if not wait:
        return _load_in_background(batch, verbose)
    line = SharedLine(line_of_context())
    try:
        for one in batch:
            one.start(line)
        _await(batch, line)
    except BaseException:
        wait_for(_cancel(batch))
        raise
    finally:
        line.end()
    return _deliver(batch, verbose)


def _deliver(batch: Sequence[_OneOfMany], verbose: bool) -> LoadedModules:
    """Finish all loads, which have ended, in their order."""
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


class _BatchFuture(LoadFuture[LoadedModules]):
    """A batch in the background. It has no thread: the load that ends last delivers all of them."""

    def __init__(self, batch: Sequence[_OneOfMany], verbose: bool) -> None:
        super().__init__(_name_of(batch))
        self._batch = batch
        self._verbose = verbose
        works = [one.work for one in batch if one.work is not None]
        self._lock = threading.Lock()
        self._left = len(works) + 1
        self.set_running_or_notify_cancel()
        for work in works:
            work.add_done_callback(self._on_end)
        self._on_end()  # perhaps there is none

    @property
    def progress(self) -> str:
        return super().progress if self.done() else _progress(self._batch)

    def cancel(self) -> bool:
        cancels = super().cancel()
        _cancel(self._batch)
        return cancels

    def _on_end(self, _: object = None) -> None:
        with self._lock:
            self._left -= 1
            if self._left > 0:
                return
        try:
            result = copy_context().run(self._finish)
        except BaseException as error:
            self.set_exception(error)
        else:
            self.set_result(result)

    def _finish(self) -> LoadedModules:
        warning_listener.set(self._warnings.append)
        self.check()
        return _deliver(self._batch, self._verbose)


def _load_in_background(batch: Sequence[_OneOfMany], verbose: bool) -> LoadFuture[LoadedModules]:
    try:
        for one in batch:
            one.start()
    except BaseException:
        _cancel(batch)
        raise
    return _BatchFuture(batch, verbose)


def _name_of(batch: Sequence[_OneOfMany]) -> str:
    """Return a name for all of them."""
    more = f" and {len(batch) - 1} more" if len(batch) > 1 else ""
    return f"{batch[0].name}{more}" if batch else ""


def _prepared(index: int, load: Mapping[str, Any] | str | os.PathLike[str], options: Mapping[str, Any]) -> _OneOfMany:
    parameters = {**options, **(load if isinstance(load, Mapping) else {"path": load})}
    what = [name for name in WHAT if name in parameters]
    if len(what) != 1:
        found = " and ".join(what) or "none of them"
        raise TypeError(f"load {index} must have one of {', '.join(WHAT)}; it has {found}")
    try:
        return _OneOfMany(what[0], parameters)
    except TypeError as error:
        add_note(error, f"in load_many(): load {index}")
        raise


def _await(batch: Sequence[_OneOfMany], line: SharedLine) -> None:
    """Wait until all have ended, and show how far they are."""
    began = time.monotonic()
    left: set[Future[Fetched]] = {one.work for one in batch if one.work is not None}
    while left:
        left = wait_for(left, timeout=_LOOK_SECONDS).not_done
        seconds = time.monotonic() - began
        if left and seconds >= _PROGRESS_AFTER_SECONDS:
            done = bar(sum(one.ended for one in batch), len(batch))
            line.show(f"kernix: {done} {_progress(batch)}, {seconds:.0f} s")


def _progress(batch: Sequence[_OneOfMany]) -> str:
    ended = sum(one.ended for one in batch)
    failed = sum(one.failed for one in batch)
    running = [one.work for one in batch if one.work is not None and one.work.running()]
    texts = [f"{ended} of {len(batch)} loads done"]
    if failed:
        texts.append(f"{failed} failed")
    if running:
        texts.append(f"{running[0].name}: {running[0].progress}")
    return ", ".join(texts)


def _cancel(batch: Sequence[_OneOfMany]) -> list[BackgroundFetch]:
    """Cancel all. Return those that may still have to end."""
    works = [one.work for one in batch if one.work is not None]
    for work in works:
        work.cancel()
    return works


def _summary(batch: Sequence[_OneOfMany]) -> str:
    failed = [(index, one.error) for index, one in enumerate(batch) if one.error is not None]
    lines = [f"load {index}, {batch[index].name}: {in_a_line(error)}" for index, error in failed]
    return "\n  ".join([f"{len(failed)} of {len(batch)} loads failed:", *lines])
