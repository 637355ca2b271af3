# SPDX-License-Identifier: Apache-2.0
"""Registering single functions of a module with JAX."""

from __future__ import annotations

from kernix._errors import KernelRequestError
from kernix.loading.module import CompiledModule
from kernix.loading.request import check_text

__all__ = ["register_ffi_target"]

_PLATFORMS = {"cpu": "cpu", "host": "cpu", "cuda": "CUDA", "gpu": "CUDA"}


def register_ffi_target(
    target_name: str,
    module: CompiledModule,
    func_name: str,
    *,
    platform: str | None = None,
    replace: bool = False,
) -> None:
    """Register a function of a module as a JAX FFI target.

    Afterwards, ``jax.ffi.ffi_call(target_name, ...)`` calls the function. Registering the same code again does nothing.

    Parameters
    ----------
    target_name : str
        Name of the target. Names are global within a process.
    module : CompiledModule
        Result of a ``load_...`` function.
    func_name : str
        Name of a function of `module`.
    platform : str, optional
        ``"cpu"`` or ``"CUDA"``. Default: the platform that the module was compiled for.
    replace : bool, default False
        Make the function live under a name that other code has now, also inside functions that ``jax.jit`` has already
        compiled. The signature may change, `allow_cuda_graph` may not.

    Raises
    ------
    KernelRegistrationError
        If other code is live under the name and `replace` is false, if its `allow_cuda_graph` differs, or if JAX is not
        installed.
    KeyError
        If the module has no such function.
    """
    check_text("target_name", target_name)
    module._code.register(target_name, func_name, _platform(platform, module), replace=replace)


def _platform(name: str | None, module: CompiledModule) -> str:
    if name is None:
        return module.platform
    try:
        return _PLATFORMS[name.lower()]
    except KeyError:
        raise KernelRequestError(f'unknown platform {name!r}: use "cpu" or "CUDA"') from None
