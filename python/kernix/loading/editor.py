# SPDX-License-Identifier: Apache-2.0
"""Headers and clangd's flags, for editors."""

from __future__ import annotations

import os
from collections.abc import Sequence

from kernix import _core, _environment
from kernix._errors import KernelError
from kernix.loading.request import Defines, define_flags, path_list, string_list


def get_include() -> str:
    """Return the folder of the headers that kernels include (``brainevent/common.h``).

    A load finds them by itself, in its kernixd. This folder is for editors and for compilers that you call yourself.
    """
    return os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "include")


def write_compile_flags(
    directory: str | os.PathLike[str],
    *,
    extra_cflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str | os.PathLike[str]] | None = None,
    defines: Defines = None,
) -> str:
    """Write a ``compile_flags.txt`` from which clangd understands the kernels in a folder and below it.

    Parameters
    ----------
    directory : str or path-like
        The folder. A ``compile_flags.txt`` that is there is replaced.
    extra_cflags : list of str, optional
        Additional flags, for clang. Do not pass flags that only nvcc knows.
    extra_include_paths, defines
        As in your loads, see :func:`load_cuda_inline`.

    Returns
    -------
    str
        Path of the file.
    """
    include = get_include()
    folders = [include, *path_list(extra_include_paths, "extra_include_paths"), *_environment.jax_include_paths()]
    flags = [
        "-std=c++17",
        *(f"-I{folder}" for folder in [*folders, os.path.join(include, "compat")]),
        # A load adds these to the kernels that need them.
        "-DKERNIX_USES_HALF",
        "-DKERNIX_USES_STDEXCEPT",
        "-include",
        "brainevent/typed.h",
        *_cuda_flags(),
        *define_flags(defines),
        *string_list(extra_cflags, "extra_cflags"),
    ]
    path = os.path.join(os.path.abspath(directory), "compile_flags.txt")
    content = os.fsencode("".join(f"{flag}\n" for flag in flags))
    with open(path, "wb") as file:
        file.write(content)
    return path


def _cuda_flags() -> list[str]:
    """Return clang's flags for CUDA, or nothing if there is no nvcc here."""
    try:
        nvcc = _core.find_nvcc(_environment.site_packages())
    except KernelError:
        return []
    toolkit = os.path.dirname(os.path.dirname(os.path.realpath(nvcc)))
    # clang need not know this machine's GPU, nor have the library for its device code.
    return [
        f"--cuda-path={toolkit}",
        "--cuda-gpu-arch=sm_80",
        "-nocudalib",
        "-Wno-unknown-cuda-version",
        "-Wno-unused-command-line-argument",
        f"-isystem{toolkit}/include/cccl",
    ]
