# SPDX-License-Identifier: Apache-2.0
"""A Python installation's part of a load: CUDA wheels, JAX's headers, and the programs of this package."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import NoReturn


def site_packages() -> list[str]:
    """Return the folders of ``sys.path`` where NVIDIA's wheels are installed."""
    return [folder for folder in sys.path if folder and _has_wheels(folder)]


def _has_wheels(folder: str) -> bool:
    wheels = f"{folder}/nvidia"
    # Most folders have none. access() says so without an exception, which takes half of the time that isdir() takes.
    return os.access(wheels, os.F_OK) and os.path.isdir(wheels)


def for_kernixctl() -> dict[str, str]:
    """Return the environment of a ``kernixctl`` that finds nvcc and JAX's headers among the packages of this Python."""
    with_jax = [os.path.dirname(os.path.dirname(path)) for path in jax_include_paths()]
    folders = dict.fromkeys([*site_packages(), *with_jax])
    return {"KERNIX_SITE_PACKAGES": ":".join(folders), **os.environ}


_jax_include_paths: list[str] = []


def jax_include_paths() -> list[str]:
    """Return ``[jax.ffi.include_dir()]``, or ``[]`` without jaxlib. Does not import jaxlib."""
    global _jax_include_paths
    # Only a successful search is remembered, because jaxlib may be installed later.
    _jax_include_paths = _jax_include_paths or _find_jax_include_paths()
    return list(_jax_include_paths)


def _find_jax_include_paths() -> list[str]:
    from importlib.util import find_spec

    try:
        spec = find_spec("jaxlib")
    except (ImportError, ValueError):  # a broken installation of jaxlib, which kernix need not report
        return []
    folders = spec.submodule_search_locations if spec is not None else None
    candidates = [os.path.join(folder, "include") for folder in folders or []]
    return [path for path in candidates if os.path.isdir(path)][:1]


def program(name: str) -> str:
    """Return the path of this package's ``kernixd`` or ``kernixctl``, or ``""`` if the package lacks it."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", name)
    return path if os.access(path, os.X_OK) else ""


def _run(name: str, environment: Mapping[str, str]) -> NoReturn:
    path = program(name)
    if not path:
        sys.exit(f"{name}: this installation of kernix does not contain this program")
    os.execve(path, [name, *sys.argv[1:]], environment)


def kernixd() -> NoReturn:
    """Replace this process with ``kernixd``."""
    _run("kernixd", os.environ)


def kernixctl() -> NoReturn:
    """Replace this process with ``kernixctl``, which then also searches the packages of this Python for nvcc."""
    if sys.argv[1:2] == ["tune"]:  # it calls kernels on arrays of Python
        from kernix.__main__ import main

        sys.exit(main())
    _run("kernixctl", for_kernixctl())
