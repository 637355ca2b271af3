# SPDX-License-Identifier: Apache-2.0
"""Libraries that were compiled before, and lie in files."""

from __future__ import annotations

import os
import time

from kernix import _core
from kernix._errors import short_errors
from kernix.jax.targets import jax_is_installed
from kernix.loading import connection
from kernix.loading.module import CompiledModule, module_of
from kernix.loading.report import LoadReport, in_a_line, note
from kernix.loading.request import check_text

__all__ = ["load_library"]


@short_errors
def load_library(
    path: str | os.PathLike[str],
    *,
    replace: bool = False,
    auto_register: bool = True,
    target_prefix: str | None = None,
) -> CompiledModule:
    """Open a library that ``kernixctl compile -o`` or `build_directory` has written.

    Needs neither a compiler nor kernixd, and does not know the sources: it cannot tell whether they have changed since
    (a bundle can, see the parameter `bundle` of the other loads). A library is code: open those that you trust.

    Parameters
    ----------
    path : str or path-like
        The library.
    replace, auto_register, target_prefix
        As for :func:`load_cuda_inline`. Default of `target_prefix`: the name that the module was compiled under.

    Returns
    -------
    CompiledModule
        It is of the platform, and has the functions, that it was compiled for.

    Raises
    ------
    KernelRequestError
        If the file cannot be read.
    KernelLoadError
        If the file is another library, or does not open in this process.
    KernelRegistrationError
        If other code is live under a target name.
    """
    prefix = "" if target_prefix is None else check_text("target_prefix", target_prefix)
    name = os.path.splitext(os.path.basename(os.fsdecode(path)))[0]
    began = time.monotonic()
    try:
        core = _core.load_library(connection.client(), os.fsencode(path), prefix, replace)
    except Exception as error:
        note(LoadReport(name, "failed", time.monotonic() - began, reason=in_a_line(error)))
        raise
    note(LoadReport(core.name, core.origin, time.monotonic() - began))
    module = module_of(core, 0, prefix or None)
    if auto_register and jax_is_installed():
        module._code.register_all(prefix or core.name, replace=replace)
    return module
