# SPDX-License-Identifier: Apache-2.0
"""Kernels in plain CUDA or C++, compiled by kernixd and called from JAX.

>>> import kernix
>>> kernix.load_cpp_inline("hello", source)  # doctest: +SKIP
>>> jax.ffi.ffi_call("hello.add_one", jax.ShapeDtypeStruct(x.shape, x.dtype))(x)  # doctest: +SKIP
"""

from kernix._cache import clear_cache, get_cache_dir, set_cache_dir
from kernix._core import version as _version
from kernix._diagnostics import print_diagnostics
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
from kernix._function import KernelFunction
from kernix._load import load_cpp_file, load_cpp_inline, load_cuda_dir, load_cuda_file, load_cuda_inline
from kernix._module import CompiledModule
from kernix._resources import KernelResources
from kernix._targets import list_registered_targets, register_ffi_target
from kernix._vjp import DifferentiableFunction

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
    "clear_cache",
    "get_cache_dir",
    "list_registered_targets",
    "load_cpp_file",
    "load_cpp_inline",
    "load_cuda_dir",
    "load_cuda_file",
    "load_cuda_inline",
    "print_diagnostics",
    "register_ffi_target",
    "set_cache_dir",
]
