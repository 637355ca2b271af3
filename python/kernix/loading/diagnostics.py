# SPDX-License-Identifier: Apache-2.0
"""A summary of kernix' environment, for users and for bug reports."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

from kernix import _core, _environment
from kernix._errors import KernelError
from kernix.jax.targets import list_registered_targets
from kernix.loading import connection

__all__ = ["print_diagnostics"]


def print_diagnostics() -> None:
    """Print versions, daemon, cache and registered targets to ``sys.stdout``. Starts a daemon if none is running."""
    for label, value in _facts():
        print(f"{label + ':':<20} {value}")


def _facts() -> Iterator[tuple[str, str]]:
    yield "kernix", f"{_core.version()} (build {_core.build_id()[:12]})"
    yield "Python", f"{sys.version.split()[0]} at {sys.executable}"
    for package in ("jax", "jaxlib"):
        yield package, _version(package)
    yield "XLA FFI headers", ", ".join(_environment.jax_include_paths()) or "not found"
    yield "host compiler", _or_reason(_core.find_host_compiler)
    yield "nvcc", _or_reason(lambda: _core.find_nvcc(_environment.site_packages()))
    yield "GPU architecture", _or_reason(_core.gpu_architecture)
    yield from _daemon()
    yield "registered targets", ", ".join(list_registered_targets()) or "none"


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version  # here: it would double the time of `import kernix`

    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _or_reason(find: Callable[[], str]) -> str:
    try:
        return find()
    except KernelError as error:
        return str(error).partition("\n")[0]


def _daemon() -> Iterator[tuple[str, str]]:
    try:
        client = connection.client()
        info = client.info()
        stats = client.stats()
    except KernelError as error:
        yield "kernixd", f"not reachable: {error}"
        return
    kind = "shared" if info.shared else "of this user"
    yield "kernixd", f"{info.version} (build {info.build_id[:12]}), {kind}, process {info.pid}, {info.address}"
    size = f"{_megabytes(stats.bytes)} of {_megabytes(stats.limit_bytes)}"
    yield "cache", f"{info.store_directory}: {stats.entries} entries, {size}, {stats.hits} hits, {stats.builds} builds"


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"
