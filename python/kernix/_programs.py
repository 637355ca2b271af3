# SPDX-License-Identifier: Apache-2.0
"""The commands ``kernixd`` and ``kernixctl`` of an installed wheel."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import NoReturn

from kernix import _environment

__all__ = ["kernixctl", "kernixd"]


def _run(name: str, environment: Mapping[str, str]) -> NoReturn:
    path = _environment.program(name)
    if not path:
        sys.exit(f"{name}: this installation of kernix does not contain this program")
    os.execve(path, [name, *sys.argv[1:]], environment)


def kernixd() -> NoReturn:
    """Replace this process with ``kernixd``."""
    _run("kernixd", os.environ)


def kernixctl() -> NoReturn:
    """Replace this process with ``kernixctl``, which then also looks for nvcc among the packages of this Python."""
    _run("kernixctl", _environment.for_kernixctl())
