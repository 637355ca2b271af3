# SPDX-License-Identifier: Apache-2.0
"""Loaders with the signatures of the real ones. None of them works: a test that gets here fails."""

from . import kernix_toolchain as kernix_toolchain


class Reached(Exception):
    """The package's own function was called."""


class CompiledModule:
    """The package's own kind of module."""

    def __init__(self, so_path, function_names):
        self._so_path, self._functions = so_path, dict.fromkeys(function_names)


def load_cuda_inline(
    name,
    cuda_sources,
    functions=None,
    *,
    extra_cuda_cflags=None,
    extra_ldflags=None,
    extra_include_paths=None,
    build_directory=None,
    verbose=False,
    compute_capability=None,
    force_rebuild=False,
    replace=False,
    auto_register=True,
    target_prefix=None,
    optimization_level=3,
    use_fast_math=False,
    allow_cuda_graph=True,
):
    """Compile inline CUDA source."""
    raise Reached


def load_cuda_file(filepath, functions=None, *, name=None, **kwargs):
    """Compile a CUDA file."""
    raise Reached


def load_cuda_dir(directory, functions=None, *, name=None, file_patterns=None, **kwargs):
    """Compile a folder."""
    raise Reached


def load_cpp_inline(
    name,
    cpp_sources,
    functions=None,
    *,
    extra_cflags=None,
    extra_ldflags=None,
    extra_include_paths=None,
    build_directory=None,
    verbose=False,
    force_rebuild=False,
    replace=False,
    auto_register=True,
    target_prefix=None,
):
    """Compile inline C++ source."""
    raise Reached


def load_cpp_file(filepath, functions=None, *, name=None, **kwargs):
    """Compile a C++ file."""
    raise Reached


def register_ffi_target(target_name, module, func_name, *, platform="CUDA", replace=False, content_id=None):
    """Register a function."""
    raise Reached


def list_registered_targets():
    """Return the names of the package's own targets."""
    return ["of_the_package"]


def set_cache_dir(path):
    """Choose the cache."""
    raise Reached


def get_cache_dir():
    """Return the cache."""
    raise Reached


def clear_cache(name=None):
    """Empty the cache."""
    raise Reached


def print_diagnostics():
    """Print what there is."""
    raise Reached
