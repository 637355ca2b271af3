# SPDX-License-Identifier: Apache-2.0
"""One load: from a request to a module whose functions JAX can call."""

from __future__ import annotations

import os
from collections.abc import Hashable
from typing import TypedDict

from kernix import _core
from kernix.jax.targets import Code, jax_is_installed
from kernix.loading import connection
from kernix.loading.console import LoadConsole
from kernix.loading.inputs import Inputs
from kernix.loading.memo import memo
from kernix.loading.module import CompiledModule
from kernix.loading.request import Request

__all__ = ["Delivery", "load"]


class Delivery(TypedDict, total=False):
    """Parameters of every load that do not change what is built."""

    build_directory: str | os.PathLike[str] | None
    verbose: bool
    force_rebuild: bool
    replace: bool
    auto_register: bool
    target_prefix: str | None


def load(
    request: Request,
    max_parallel_jobs: int,
    *,
    build_directory: str | os.PathLike[str] | None = None,
    verbose: bool = False,
    force_rebuild: bool = False,
    replace: bool = False,
    auto_register: bool = True,
    target_prefix: str | None = None,
) -> CompiledModule:
    """Compile what `request` asks for, unless this process has it, and deliver it as the other parameters say.

    Parameters
    ----------
    request : Request
        What is built.
    max_parallel_jobs : int
        Most compile jobs at once; 0: what the daemon allows.
    build_directory, verbose, force_rebuild, replace, auto_register, target_prefix
        As for :func:`kernix.load_cuda_inline`.

    Returns
    -------
    CompiledModule
    """
    prefix = (target_prefix or request.name) if auto_register and jax_is_installed() else None
    key = (request, prefix, connection.store_override(), _core.environment_fingerprint(), _working_directory())
    asks = force_rebuild or verbose or build_directory
    module = None if asks else memo.find(key)
    if module is None:
        module = _load_anew(request, max_parallel_jobs, verbose, force_rebuild, key)
    if build_directory:
        module._code.core.write_build_directory(os.fsencode(build_directory))
    if prefix is not None:
        module._code.register_all(prefix, replace=replace or force_rebuild)
    return module


def _load_anew(
    request: Request, max_parallel_jobs: int, verbose: bool, force_rebuild: bool, key: Hashable
) -> CompiledModule:
    generation = memo.generation
    inputs = Inputs(request.include_paths)
    module = _build(request, max_parallel_jobs, verbose, force_rebuild, inputs)
    stamps = inputs.stamps()
    if stamps is not None:
        memo.remember(key, module, stamps, generation)
    return module


def _working_directory() -> str:
    """Return what relative folders in flags and in the environment are relative to."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def _build(
    request: Request, max_parallel_jobs: int, verbose: bool, force_rebuild: bool, inputs: Inputs
) -> CompiledModule:
    options = request.core_options()
    options.max_parallel_jobs = max_parallel_jobs
    options.verbose = verbose
    options.force_rebuild = force_rebuild
    with LoadConsole(request.name, inputs) as console:
        core = _core.load(
            connection.client(), request.core_language(), request.name, request.core_sources(), options, console
        )
        if verbose:
            origin = "from the cache" if core.cache_hit else f"built in {core.build_ms} ms"
            console.output(f"kernix: {request.name}: {origin}, {core.path}")
    return CompiledModule(Code(core, request.platform))
