# SPDX-License-Identifier: Apache-2.0
"""Kernels in plain CUDA or C++, compiled by kernixd and called from JAX.

>>> import kernix
>>> kernix.load_cpp_inline("hello", source)  # doctest: +SKIP
>>> jax.ffi.ffi_call("hello.add_one", jax.ShapeDtypeStruct(x.shape, x.dtype))(x)  # doctest: +SKIP
"""

import typing as _typing
from importlib import import_module as _import_module
from importlib.util import find_spec as _find_spec

if _typing.TYPE_CHECKING:
    from kernix._errors import (
        CompilationError,
        KernelCallError,
        KernelCompilationError,
        KernelDaemonError,
        KernelError,
        KernelLoadError,
        KernelNotCachedError,
        KernelRegistrationError,
        KernelRequestError,
        KernelResourceError,
        KernelToolchainError,
        KernelWarning,
    )
    from kernix.calling.derivatives import DifferentiableFunction
    from kernix.calling.function import KernelFunction
    from kernix.jax.targets import list_registered_targets
    from kernix.loading.background import LoadFuture
    from kernix.loading.cache import clear_cache, get_cache_dir, set_cache_dir
    from kernix.loading.diagnostics import print_diagnostics
    from kernix.loading.editor import get_include, write_compile_flags
    from kernix.loading.load import (
        load_cpp_dir,
        load_cpp_file,
        load_cpp_inline,
        load_cuda_dir,
        load_cuda_file,
        load_cuda_inline,
    )
    from kernix.loading.many import KernelBatchError, LoadedModules, LoadReport, load_many
    from kernix.loading.module import CompiledModule
    from kernix.loading.registration import register_ffi_target
    from kernix.loading.resources import KernelResources
    from kernix.loading.trace import BuildStep, BuildTrace
    from kernix.loading.watch import Watch, watch
    from kernix.notebook.extension import load_ipython_extension

    __version__: str

__all__ = [
    "BuildStep",
    "BuildTrace",
    "CompilationError",
    "CompiledModule",
    "DifferentiableFunction",
    "KernelBatchError",
    "KernelCallError",
    "KernelCompilationError",
    "KernelDaemonError",
    "KernelError",
    "KernelFunction",
    "KernelLoadError",
    "KernelNotCachedError",
    "KernelRegistrationError",
    "KernelRequestError",
    "KernelResourceError",
    "KernelResources",
    "KernelToolchainError",
    "KernelWarning",
    "LoadFuture",
    "LoadReport",
    "LoadedModules",
    "Watch",
    "clear_cache",
    "get_cache_dir",
    "get_include",
    "list_registered_targets",
    "load_cpp_dir",
    "load_cpp_file",
    "load_cpp_inline",
    "load_cuda_dir",
    "load_cuda_file",
    "load_cuda_inline",
    "load_ipython_extension",
    "load_many",
    "print_diagnostics",
    "register_ffi_target",
    "set_cache_dir",
    "watch",
    "write_compile_flags",
]

#: Where the public names are. A name is imported when it is first used: the extension and its libraries take some
#: fifteen milliseconds, and many programs import a package that may load a kernel, but does not.
_PLACES = {
    "kernix._errors": (
        "CompilationError",
        "KernelCallError",
        "KernelCompilationError",
        "KernelDaemonError",
        "KernelError",
        "KernelLoadError",
        "KernelNotCachedError",
        "KernelRegistrationError",
        "KernelRequestError",
        "KernelResourceError",
        "KernelToolchainError",
        "KernelWarning",
    ),
    "kernix.calling.function": ("KernelFunction",),
    "kernix.calling.derivatives": ("DifferentiableFunction",),
    "kernix.jax.targets": ("list_registered_targets",),
    "kernix.loading.background": ("LoadFuture",),
    "kernix.loading.cache": ("clear_cache", "get_cache_dir", "set_cache_dir"),
    "kernix.loading.diagnostics": ("print_diagnostics",),
    "kernix.loading.editor": ("get_include", "write_compile_flags"),
    "kernix.loading.load": (
        "load_cpp_dir",
        "load_cpp_file",
        "load_cpp_inline",
        "load_cuda_dir",
        "load_cuda_file",
        "load_cuda_inline",
    ),
    "kernix.loading.many": ("KernelBatchError", "LoadedModules", "LoadReport", "load_many"),
    "kernix.loading.module": ("CompiledModule",),
    "kernix.loading.registration": ("register_ffi_target",),
    "kernix.loading.resources": ("KernelResources",),
    "kernix.loading.trace": ("BuildStep", "BuildTrace"),
    "kernix.loading.watch": ("Watch", "watch"),
    "kernix.notebook.extension": ("load_ipython_extension",),
}

if _find_spec("kernix._core") is None:
    raise ImportError(
        "kernix is installed without its extension for this Python: install kernix again with this Python's pip",
        name="kernix._core",
    )


def __getattr__(name: str) -> _typing.Any:
    """Import a public name."""
    if name == "__version__":
        value = _import_module("kernix._core").version()
    else:
        place = next((module for module, names in _PLACES.items() if name in names), None)
        if place is None:
            raise AttributeError(f"module 'kernix' has no attribute {name!r}")
        value = getattr(_import_module(place), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, "__version__", *(name for name in globals() if name.startswith("_"))})
