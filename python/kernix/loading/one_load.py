# SPDX-License-Identifier: Apache-2.0
"""One load: from a request to a module whose functions JAX can call."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, ParamSpec, Protocol, TypeVar, cast, overload

from kernix import _core
from kernix._errors import KernelCompilationError, KernelError, KernelNotCachedError, short_errors
from kernix.jax.targets import jax_is_installed
from kernix.loading import connection
from kernix.loading.console import LoadConsole
from kernix.loading.freeze import freeze_load
from kernix.loading.module import CompiledModule, hidden_functions, module_of, origin_in_words
from kernix.loading.report import LoadReport, in_a_line, note
from kernix.loading.request import bundle_paths, check_text, folder_path

if TYPE_CHECKING:
    from kernix.loading.background import LoadFuture

__all__ = ["Fetched", "Policy", "PreparedLoad", "public_load"]

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

#: Whether a load may compile what the cache does not have.
Policy = Literal["build", "cached"]


class _Loader(Protocol[_Parameters, _Result]):
    """How type checkers see a function that loads: with ``wait=False``, it returns a future."""

    @overload
    def __call__(self, *args: Any, wait: Literal[False], **options: Any) -> LoadFuture[_Result]: ...
    @overload
    def __call__(self, *args: _Parameters.args, **options: _Parameters.kwargs) -> _Result: ...


def public_load(function: Callable[_Parameters, _Result | LoadFuture[_Result]]) -> _Loader[_Parameters, _Result]:
    """Wrap a public function that loads."""
    return cast("_Loader[_Parameters, _Result]", short_errors(function))


class Fetched(NamedTuple):
    """What a load has found or built, before it is delivered."""

    core: _core.Module
    slot: int
    report: LoadReport


class PreparedLoad:
    """A load whose parameters have been checked.

    Parameters
    ----------
    request : _core.Request
        The build's parameters.
    build_directory, verbose, force_rebuild, policy, bundle, replace, auto_register, target_prefix
        As for :func:`kernix.load_cuda_inline`.
    """

    __slots__ = ("_folder", "_freeze", "_prefix", "_replace", "request")

    def __init__(
        self,
        request: _core.Request,
        *,
        build_directory: str | os.PathLike[str] | None = None,
        verbose: bool = False,
        force_rebuild: bool = False,
        policy: Policy | None = None,
        bundle: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
        replace: bool = False,
        auto_register: bool = True,
        target_prefix: str | None = None,
    ) -> None:
        if verbose or force_rebuild:
            request.verbose = verbose
            request.force_rebuild = force_rebuild
        if replace:
            request.begin_anew = True
        if policy is not None:
            check_text("policy", policy)
            request.policy = policy
        if bundle is not None:
            request.bundles = bundle_paths(bundle)
        self._freeze = freeze_load(request, policy)
        if target_prefix is not None and check_text("target_prefix", target_prefix):
            request.instance = target_prefix
        self.request = request
        self._prefix = (target_prefix or request.name) if auto_register and jax_is_installed() else None
        self._folder = None if build_directory is None else folder_path(build_directory, "build_directory")
        self._replace = replace or force_rebuild

    def load(self, wait: bool) -> CompiledModule | LoadFuture[CompiledModule]:
        """Run, here or in the background."""
        if wait:
            return self.run()
        from kernix.loading.background import load_in_background  # it imports what loads that wait do not need

        return load_in_background(self)

    def run(self) -> CompiledModule:
        """Compile, unless this process has the module already, and deliver the module as requested."""
        return self.deliver(self.fetch())

    def fetch(self) -> Fetched:
        """Compile, unless this process has the module already, and note that for :func:`kernix.report`."""
        began = time.monotonic()
        client = connection.latest()
        core, slot = (None, 0) if client is None else _core.find_loaded(client, self.request)
        if core is None:
            return self._fetch_anew(began)
        report = LoadReport(self.request.name, "process", time.monotonic() - began)
        note(report)
        return Fetched(core, slot, report)

    def _fetch_anew(self, began: float) -> Fetched:
        """Ask kernixd."""
        name = self.request.name
        try:
            core, slot = _load_anew(self.request, self._folder)
        except Exception as error:
            report = LoadReport(name, "failed", time.monotonic() - began, reason=in_a_line(error))
            self._note(report, error)
            if isinstance(error, KernelNotCachedError) and self._freeze is not None:
                raise self._freeze.refusal(error) from None
            raise
        report = LoadReport(name, core.origin, time.monotonic() - began, core.build_ms, core.miss_reason)
        self._note(report)
        if report.origin == "built" and self._freeze is not None and self._freeze.action == "warn":
            self._freeze.warn_of(report)
        return Fetched(core, slot, report)

    def _note(self, report: LoadReport, error: Exception | None = None) -> None:
        note(report, "" if self._freeze is None else self._freeze.outcome_of(report, error))

    def deliver(self, fetched: Fetched) -> CompiledModule:
        """Write the build directory and register the functions, as requested."""
        module = module_of(fetched.core, fetched.slot, self._prefix)
        if self._folder:
            module._code.core.write_build_directory(os.fsencode(self._folder))
        if self._prefix is not None:
            module._code.register_all(self._prefix, replace=self._replace)
        return module


def _load_anew(request: _core.Request, build_folder: str | None) -> tuple[_core.Module, int]:
    with LoadConsole(request.name) as console:
        try:
            core, slot = _core.load(connection.client(), request, console)
        except KernelCompilationError as error:
            if build_folder:
                with suppress(KernelError):  # a folder that cannot be written does not hide the compiler's error
                    error.save(os.path.join(build_folder, f"{request.name}.failed"))
            raise
        for name in hidden_functions(core):
            text = (
                f"module {request.name!r}: its function {name!r} is hidden by CompiledModule.{name}. "
                f'Call it as module["{name}"], or rename it.'
            )
            if shown := _core.shown_warning("hidden-function", text):
                console.warning(shown)
        if request.verbose:
            console.output(f"kernix: {request.name}: {origin_in_words(core)}, {core.path}")
    return core, slot
