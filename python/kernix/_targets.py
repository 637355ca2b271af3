# SPDX-License-Identifier: Apache-2.0
"""Target names of JAX, and what code is live behind them."""

from __future__ import annotations

import sys
import time
from types import ModuleType
from typing import Any

from kernix import _core
from kernix._console import warn
from kernix._errors import KernelRegistrationError, KernelRequestError
from kernix._lock import ForkSafeLock
from kernix._memo import Memo
from kernix._module import CompiledModule

__all__ = [
    "jax_is_installed",
    "list_registered_targets",
    "memo",
    "register_ffi_target",
    "register_functions",
    "register_private",
]

_PLATFORMS = {"cpu": "cpu", "host": "cpu", "cuda": "CUDA", "gpu": "CUDA"}
_COMMAND_BUFFER_COMPATIBLE = 1  # bit of FunctionInfo.traits

#: Loads of this process. Here, because replacing a target makes all of it stale.
memo = Memo()

_lock = ForkSafeLock()  # one bind at a time
_known_to_jax: set[tuple[str, str]] = set()
_SEARCH_EVERY_S = 1.0
_searched_in_vain = -_SEARCH_EVERY_S  # when JAX was last not found; monotonic clock


def register_ffi_target(
    target_name: str,
    module: CompiledModule,
    func_name: str,
    *,
    platform: str | None = None,
    replace: bool = False,
) -> None:
    """Register a function of a module as a JAX FFI target.

    After it ``jax.ffi.ffi_call(target_name, ...)`` calls the function. Registering the same code again does nothing.

    Parameters
    ----------
    target_name : str
        Name of the target. Names are global in a process.
    module : CompiledModule
        Result of a ``load_...`` function.
    func_name : str
        Name of a function of `module`.
    platform : str, optional
        ``"cpu"`` or ``"CUDA"``; default: the one that the module was compiled for.
    replace : bool, default False
        Make the function live under a name that other code has now, also inside functions that ``jax.jit`` has already
        compiled. The signature must stay the same.

    Raises
    ------
    KernelRegistrationError
        When other code is live under the name and `replace` is false, when the signature would change, or when JAX is
        not installed.
    KeyError
        When the module has no such function.
    """
    if func_name not in module.function_names:
        raise KeyError(f"no function {func_name!r} in module {module.name!r}; it has {module.function_names}")
    _bind([(target_name, func_name)], module, _platform(platform, module), replace)


def register_functions(module: CompiledModule, prefix: str, *, replace: bool) -> bool:
    """Register every function of `module` as ``<prefix>.<function>`` on the platform of the module, or none of them.

    Returns
    -------
    bool
        Whether other code was replaced.
    """
    names = [(f"{prefix}.{function}", function) for function in module.function_names]
    replaced = _bind(names, module, module.platform, replace)
    module._prefix = prefix
    return replaced


def register_private(module: CompiledModule, function: str) -> str:
    """Register a function under a name of its content's own, which nothing else can have, and return the name."""
    target = f"kernix.{module.content_hash}.{function}"
    _bind([(target, function)], module, module.platform, False)
    return target


def jax_is_installed() -> bool:
    """Return whether there is a JAX to register with. Does not import it.

    Where there was none it is not searched for again at once, since that would be most of what a load costs that this
    process has done before; one that is imported meanwhile is seen, and one that is installed takes longer than that.
    """
    global _searched_in_vain
    if "jax" in sys.modules:
        return sys.modules["jax"] is not None  # None: something has forbidden the import
    now = time.monotonic()
    if now < _searched_in_vain + _SEARCH_EVERY_S:
        return False
    from importlib.util import find_spec

    found = find_spec("jax") is not None
    if not found:
        _searched_in_vain = now
    return found


def list_registered_targets() -> list[str]:
    """Return the names of all targets that kernix has registered in this process, sorted.

    Returns
    -------
    list of str
    """
    return sorted({target for target, _ in _core.list_targets()})


def _platform(name: str | None, module: CompiledModule) -> str:
    if name is None:
        return module.platform
    try:
        return _PLATFORMS[name.lower()]
    except KeyError:
        raise KernelRequestError(f'platform {name!r} is not known: use "cpu" or "CUDA"') from None


def _bind(names: list[tuple[str, str]], module: CompiledModule, platform: str, replace: bool) -> bool:
    """Bind (target, function) pairs, all or none; return whether other code was replaced."""
    jax_ffi = _import_jax_ffi(names[0][0])  # before the lock: it can take a second

    def announce(target: str, capsule: Any) -> None:
        _tell_jax(jax_ffi, target, capsule, platform)

    with _lock:
        _check_waiting([target for target, _ in names], platform)
        outcomes = _core.bind_targets(platform, module._core, names, replace, announce)
    replaced = [name for name, outcome in zip(names, outcomes, strict=True) if outcome == _core.BindOutcome.REPLACED]
    if replaced:
        memo.forget()
    for target, function in replaced:
        _warn_about_graphs(target, module, function, platform)
    return bool(replaced)


def _import_jax_ffi(target: str) -> ModuleType:
    try:
        import jax.ffi

        return jax.ffi
    except ImportError as error:
        raise KernelRegistrationError(
            f"cannot register {target!r}: `import jax.ffi` failed ({error}). Install jax, or pass auto_register=False."
        ) from error


def _check_waiting(targets: list[str], platform: str) -> None:
    """Refuse names that are taken, where JAX itself would not: see :func:`_waiting_in_jax`."""
    waiting = _waiting_in_jax(platform)
    for target in targets:
        if target in waiting and (target, platform) not in _known_to_jax:
            raise _refusal(target, platform, "something else has registered that name")


def _tell_jax(jax_ffi: ModuleType, target: str, capsule: Any, platform: str) -> None:
    """Register a target with JAX. It keeps its address, so JAX is told once."""
    if (target, platform) in _known_to_jax:
        return
    _known_to_jax.add((target, platform))  # first: a Ctrl-C in the middle must not make it a stranger's
    try:
        jax_ffi.register_ffi_target(target, capsule, platform=platform, api_version=1)
    except Exception as error:
        _known_to_jax.discard((target, platform))
        raise _refusal(target, platform, str(error)) from error


def _waiting_in_jax(platform: str) -> set[str]:
    """Return the names that JAX keeps until the backend of `platform` starts.

    Until then it takes a second handler for a name without a word. When the backend starts, it complains, keeps the
    first, and on CUDA loses all that was registered after the second. The table is private to jaxlib, which has no
    other: where it is missing, JAX's own check, once the backend runs, is all there is.
    """
    try:
        from jaxlib import xla_client

        name = xla_client.xla_platform_names.get(platform, platform)
        return {entry[0] for entry in xla_client._custom_callback.get(name, ())}
    except (AttributeError, ImportError, IndexError, TypeError):
        return set()


def _refusal(target: str, platform: str, reason: str) -> KernelRegistrationError:
    return KernelRegistrationError(
        f"JAX refused the target {target!r} on {platform}: {reason}. If something else has it, load under another "
        "name= or target_prefix=. No code became live or was replaced: calls of what this load would have added fail, "
        "although JAX may know some of the names, until a load of it succeeds."
    )


def _warn_about_graphs(target: str, module: CompiledModule, function: str, platform: str) -> None:
    info = next(info for info in module._core.functions if info.name == function)
    if platform == "CUDA" and info.traits & _COMMAND_BUFFER_COMPATIBLE:
        warn(
            f"{target!r} was replaced. A CUDA graph that JAX captured earlier replays the old code until captured "
            "again (by a new jax.jit, or after jax.clear_caches()). To keep a kernel out of CUDA graphs, load it with "
            "allow_cuda_graph=False, in this process under another name."
        )
