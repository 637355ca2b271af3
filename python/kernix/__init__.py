# SPDX-License-Identifier: Apache-2.0
"""Kernels in plain CUDA or C++, compiled by kernixd and called from JAX.

>>> import kernix
>>> kernix.load_cpp_inline("hello", source)  # doctest: +SKIP
>>> jax.ffi.ffi_call("hello.add_one", jax.ShapeDtypeStruct(x.shape, x.dtype))(x)  # doctest: +SKIP
"""

from kernix._core import version as _version
from kernix._errors import (
    CompilationError,
    KernelCallError,
    KernelCompilationError,
    KernelDaemonError,
    KernelError,
    KernelLoadError,
    KernelRegistrationError,
    KernelRequestError,
    KernelResourceError,
    KernelToolchainError,
    KernelWarning,
)
from kernix.calling.function import KernelFunction
from kernix.calling.vjp import DifferentiableFunction
from kernix.jax.targets import list_registered_targets
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
from kernix.loading.module import CompiledModule
from kernix.loading.registration import register_ffi_target
from kernix.loading.resources import KernelResources
from kernix.loading.watch import Watch, watch
from kernix.notebook.extension import load_ipython_extension

__version__ = _version()

__all__ = [
    "CompilationError",
    "CompiledModule",
    "DifferentiableFunction",
    "KernelCallError",
    "KernelCompilationError",
    "KernelDaemonError",
    "KernelError",
    "KernelFunction",
    "KernelLoadError",
    "KernelRegistrationError",
    "KernelRequestError",
    "KernelResourceError",
    "KernelResources",
    "KernelToolchainError",
    "KernelWarning",
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
    "print_diagnostics",
    "register_ffi_target",
    "set_cache_dir",
    "watch",
    "write_compile_flags",
]
