# SPDX-License-Identifier: Apache-2.0
"""Kernels in plain CUDA or C++, compiled by kernixd and called from JAX.

>>> import kernix
>>> kernix.load_cpp_inline("hello", source)  # doctest: +SKIP
>>> jax.ffi.ffi_call("hello.add_one", jax.ShapeDtypeStruct(x.shape, x.dtype))(x)  # doctest: +SKIP
"""

import typing as _typing
from importlib import import_module as _import_module
from importlib.util import find_spec as _find_spec

if _typing.TYPE_CHECKING:  # with `as`, because type checkers cannot read __all__ below
    from kernix._errors import CompilationError as CompilationError
    from kernix._errors import KernelCallError as KernelCallError
    from kernix._errors import KernelCompilationError as KernelCompilationError
    from kernix._errors import KernelDaemonError as KernelDaemonError
    from kernix._errors import KernelError as KernelError
    from kernix._errors import KernelLoadError as KernelLoadError
    from kernix._errors import KernelNotCachedError as KernelNotCachedError
    from kernix._errors import KernelRegistrationError as KernelRegistrationError
    from kernix._errors import KernelRequestError as KernelRequestError
    from kernix._errors import KernelResourceError as KernelResourceError
    from kernix._errors import KernelToolchainError as KernelToolchainError
    from kernix._errors import KernelWarning as KernelWarning
    from kernix.calling.derivatives import DifferentiableFunction as DifferentiableFunction
    from kernix.calling.function import KernelFunction as KernelFunction
    from kernix.jax.targets import list_registered_targets as list_registered_targets
    from kernix.loading.background import LoadFuture as LoadFuture
    from kernix.loading.connection import clear_cache as clear_cache
    from kernix.loading.connection import get_cache_dir as get_cache_dir
    from kernix.loading.connection import print_diagnostics as print_diagnostics
    from kernix.loading.connection import set_cache_dir as set_cache_dir
    from kernix.loading.editor import get_include as get_include
    from kernix.loading.editor import write_compile_flags as write_compile_flags
    from kernix.loading.load import load_cpp_dir as load_cpp_dir
    from kernix.loading.load import load_cpp_file as load_cpp_file
    from kernix.loading.load import load_cpp_inline as load_cpp_inline
    from kernix.loading.load import load_cuda_dir as load_cuda_dir
    from kernix.loading.load import load_cuda_file as load_cuda_file
    from kernix.loading.load import load_cuda_inline as load_cuda_inline
    from kernix.loading.load import load_library as load_library
    from kernix.loading.many import KernelBatchError as KernelBatchError
    from kernix.loading.many import LoadedModules as LoadedModules
    from kernix.loading.many import load_many as load_many
    from kernix.loading.module import CompiledModule as CompiledModule
    from kernix.loading.module import KernelResources as KernelResources
    from kernix.loading.module import register_ffi_target as register_ffi_target
    from kernix.loading.report import LoadReport as LoadReport
    from kernix.loading.report import ProcessReport as ProcessReport
    from kernix.loading.report import freeze as freeze
    from kernix.loading.report import report as report
    from kernix.loading.report import unfreeze as unfreeze
    from kernix.loading.trace import BuildStep as BuildStep
    from kernix.loading.trace import BuildTrace as BuildTrace
    from kernix.loading.watch import Watch as Watch
    from kernix.loading.watch import watch as watch
    from kernix.notebook import load_ipython_extension as load_ipython_extension
    from kernix.tuning.autotune import autotune as autotune
    from kernix.tuning.result import KernelTuningError as KernelTuningError
    from kernix.tuning.result import TuningResult as TuningResult
    from kernix.tuning.result import TuningRow as TuningRow
    from kernix.tuning.result import TuningTable as TuningTable

    __version__: str

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
    "kernix.loading.connection": ("clear_cache", "get_cache_dir", "print_diagnostics", "set_cache_dir"),
    "kernix.loading.editor": ("get_include", "write_compile_flags"),
    "kernix.loading.load": (
        "load_cpp_dir",
        "load_cpp_file",
        "load_cpp_inline",
        "load_cuda_dir",
        "load_cuda_file",
        "load_cuda_inline",
        "load_library",
    ),
    "kernix.loading.many": ("KernelBatchError", "LoadedModules", "load_many"),
    "kernix.loading.module": ("CompiledModule", "KernelResources", "register_ffi_target"),
    "kernix.loading.report": ("LoadReport", "ProcessReport", "freeze", "report", "unfreeze"),
    "kernix.loading.trace": ("BuildStep", "BuildTrace"),
    "kernix.loading.watch": ("Watch", "watch"),
    "kernix.tuning.autotune": ("autotune",),
    "kernix.tuning.result": ("KernelTuningError", "TuningResult", "TuningRow", "TuningTable"),
    "kernix.notebook": ("load_ipython_extension",),
}

__all__ = sorted(name for names in _PLACES.values() for name in names)

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
