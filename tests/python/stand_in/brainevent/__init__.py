# SPDX-License-Identifier: Apache-2.0
"""A stand-in for brainevent: names, signatures and layout that kernix.compat.brainevent relies on, and no loader."""

from . import config
from ._error import (
    CompilationError,
    GpuArchDetectionError,
    HeaderNotFoundError,
    HostCompilerIncompatibleError,
    HostCompilerNotFoundError,
    KernelError,
    KernelLoadError,
    KernelRegistrationError,
    KernelToolchainError,
    NvccNotFoundError,
    UnsupportedArchError,
)
from ._op import (
    CompiledModule,
    clear_cache,
    get_cache_dir,
    list_registered_targets,
    load_cpp_file,
    load_cpp_inline,
    load_cuda_dir,
    load_cuda_file,
    load_cuda_inline,
    print_diagnostics,
    register_ffi_target,
    set_cache_dir,
)
from .operators import add_one

__version__ = "0.3.0"
__all__ = [
    "CompilationError",
    "CompiledModule",
    "GpuArchDetectionError",
    "HeaderNotFoundError",
    "HostCompilerIncompatibleError",
    "HostCompilerNotFoundError",
    "KernelError",
    "KernelLoadError",
    "KernelRegistrationError",
    "KernelToolchainError",
    "NvccNotFoundError",
    "UnsupportedArchError",
    "add_one",
    "clear_cache",
    "config",
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
