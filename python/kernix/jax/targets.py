# SPDX-License-Identifier: Apache-2.0
"""JAX target names, and the code that is live behind them."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from types import ModuleType
from typing import Any, NoReturn

from kernix import _core
from kernix._errors import KernelRegistrationError, short_in_notebook, warn
from kernix._lock import ForkSafeLock

_COMMAND_BUFFER_COMPATIBLE = 1  # bit of FunctionInfo.traits


_lock = ForkSafeLock()  # one bind at a time
_known_to_jax: set[tuple[str, str]] = set()
_live: dict[tuple[str, str], tuple[_core.FunctionInfo, str]] = {}  # what a target calls on a platform; its digest
_instances: dict[tuple[str, str], list[int]] = {}  # the addresses of a function of a digest
_replacements = 0  # how many times a target received other code
_SEARCH_EVERY_S = 1.0
_searched_in_vain = -_SEARCH_EVERY_S  # when the last search for JAX failed; monotonic clock


class Code:
    """The code of a module, and the names by which JAX knows its functions.

    Parameters
    ----------
    core : _core.Module
        The code.

    Attributes
    ----------
    platform : str
        JAX's name of the platform that the code runs on: ``"cpu"`` or ``"CUDA"``.
    """

    __slots__ = ("_functions", "_prefix", "_registered", "core", "function_names", "platform")

    def __init__(self, core: _core.Module) -> None:
        self.core = core
        self.platform = "CUDA" if core.language == _core.Language.CUDA else "cpu"
        self._functions = {function.name: function for function in core.functions}
        self.function_names = tuple(self._functions)
        self._prefix: str | None = None
        self._registered: tuple[str, int] | None = None  # the prefix, and the number of replacements at that time

    def __deepcopy__(self, _: object) -> Code:
        return self  # the library is loaded once and stays loaded

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"module {self.core.name!r} cannot be pickled: it is code in this process. Load it in the other process, "
            "too; the cache has it"
        )

    def check(self, function: str) -> None:
        """Raise ``KeyError`` unless the module has a function of this name."""
        if function not in self.function_names:
            raise short_in_notebook(KeyError(self.no_function(function, self.function_names)))

    def no_function(self, name: str, known: Sequence[str]) -> str:
        """Return the message for a name that no function of the module has, with the nearest of the `known` names."""
        from difflib import get_close_matches

        nearest = "".join(f". Did you mean {match}?" for match in get_close_matches(str(name), known, n=1))
        return f"no function {name!r} in module {self.core.name!r}; it has {', '.join(self.function_names)}{nearest}"

    def info(self, function: str) -> _core.FunctionInfo:
        """Return libkernix' information about a function, or raise ``KeyError``."""
        self.check(function)
        return self._functions[function]

    def live_info(self, function: str) -> _core.FunctionInfo:
        """Return :meth:`info` of the code that :meth:`address` leads to."""
        live = None if self._prefix is None else _live.get((f"{self._prefix}.{function}", self.platform))
        return live[0] if live else self.info(function)

    def register_all(self, prefix: str, *, replace: bool) -> None:
        """Make every function live as ``<prefix>.<function>``, or none of them."""
        if self._registered == (prefix, _replacements):
            return
        names = [(f"{prefix}.{function}", function) for function in self.function_names]
        replacements = _bind(names, self, self.platform, replace)
        self._prefix = prefix
        self._registered = prefix, replacements

    def register(self, target: str, function: str, platform: str, *, replace: bool) -> None:
        """Make a function live as `target`."""
        self.check(function)
        _bind([(target, function)], self, platform, replace)

    def target(self, function: str) -> str:
        """Return a function's name in JAX.

        It is the name from :meth:`register_all` or, without one, a name made from the content's digest, which nothing
        else can have.
        """
        if self._prefix is not None:
            return f"{self._prefix}.{function}"
        target = f"kernix.{self._instance(function)}.{function}"
        self.register(target, function, self.platform, replace=False)
        return target

    def _instance(self, function: str) -> str:
        """Return the content's digest, with a number for each more of its instances, which have their own variables."""
        digest = self.core.artifact_digest
        instances = _instances.setdefault((digest, function), [])
        address = self.core.address(function)
        if address not in instances:
            instances.append(address)
        number = instances.index(address)
        return f"{digest}.{number}" if number else digest

    def address(self, function: str) -> int:
        """Return the address to call: the live code under :meth:`register_all`'s name, or else this module's code."""
        live = 0 if self._prefix is None else _core.target_address(f"{self._prefix}.{function}", self.platform)
        return live or self.core.address(function)


def jax_is_installed() -> bool:
    """Return whether JAX is available for registration. Does not import it.

    A failed search is remembered for a second, because searching takes longer than the rest of a load that the process
    has done before. A JAX that is imported in the meantime is noticed at once.
    """
    global _searched_in_vain
    if "jax" in sys.modules:
        return sys.modules["jax"] is not None  # None: some code has forbidden the import
    now = time.monotonic()
    if now < _searched_in_vain + _SEARCH_EVERY_S:
        return False
    from importlib.util import find_spec

    found = find_spec("jax") is not None
    if not found:
        _searched_in_vain = now
    return found


def count_replacements() -> int:
    """Return how many times a target has received other code in this process."""
    return _replacements


def list_registered_targets() -> list[str]:
    """Return the names of all targets that kernix has registered in this process, sorted."""
    return sorted({target for target, _ in _core.list_targets()})


def _bind(names: list[tuple[str, str]], code: Code, platform: str, replace: bool) -> int:
    """Bind (target, function) pairs, all or none. Return the total number of target replacements so far."""
    global _replacements
    jax_ffi = _import_jax_ffi(names[0][0])  # before taking the lock, because it can take a second

    def announce(target: str, capsule: Any) -> None:
        _tell_jax(jax_ffi, target, capsule, platform)

    with _lock:
        _check_waiting([target for target, _ in names], platform)
        outcomes = _core.bind_targets(platform, code.core, names, replace, announce)
        replaced = [
            name for name, outcome in zip(names, outcomes, strict=True) if outcome == _core.BindOutcome.REPLACED
        ]
        if platform == "CUDA":
            _refuse_on_cpu(jax_ffi, [target for target, _ in names])
        digest = code.core.artifact_digest
        changed = [each for each in replaced if not _is_live(*each, platform, digest)]
        _live.update({(target, platform): (code.info(function), digest) for target, function in names})
        _replacements += len(replaced)  # last: whoever sees the number finds the new code
        replacements = _replacements
    for target, function in changed:
        _warn_about_graphs(target, code.info(function), platform)
    return replacements


def _is_live(target: str, function: str, platform: str, digest: str) -> bool:
    """Return whether a target already calls an instance of this code."""
    live = _live.get((target, platform))
    return live is not None and (live[0].name, live[1]) == (function, digest)


def _refuse_on_cpu(jax_ffi: ModuleType, targets: list[str]) -> None:
    """Make CPU calls of CUDA code fail with an error that says so, not with JAX's "No FFI handler registered"."""

    def announce(target: str, capsule: Any) -> bool:
        try:
            _tell_jax(jax_ffi, target, capsule, "cpu")
        except KernelRegistrationError:
            return False  # other code has that name on the CPU
        return True

    waiting = _waiting_in_jax("cpu")
    _core.refuse_on_cpu(
        [name for name in targets if (name, "cpu") not in _known_to_jax and name not in waiting], announce
    )


def _import_jax_ffi(target: str) -> ModuleType:
    try:
        import jax.ffi

        return jax.ffi
    except ImportError as error:
        raise KernelRegistrationError(
            f"cannot register {target!r}: `import jax.ffi` failed ({error}). Install jax, or pass auto_register=False."
        ) from error


def _check_waiting(targets: list[str], platform: str) -> None:
    """Refuse names that are taken but that JAX itself would accept (see :func:`_waiting_in_jax`)."""
    waiting = _waiting_in_jax(platform)
    for target in targets:
        if target in waiting and (target, platform) not in _known_to_jax:
            raise _refusal(target, platform, "other code has registered that name")


def _tell_jax(jax_ffi: ModuleType, target: str, capsule: Any, platform: str) -> None:
    """Register a target with JAX. Its address never changes, so JAX is told only once."""
    if (target, platform) in _known_to_jax:
        return
    _known_to_jax.add((target, platform))  # first: after a Ctrl-C in between, it must still count as kernix' own
    try:
        jax_ffi.register_ffi_target(target, capsule, platform=platform, api_version=1)
    except Exception as error:
        _known_to_jax.discard((target, platform))
        raise _refusal(target, platform, str(error)) from error


def _waiting_in_jax(platform: str) -> set[str]:
    """Return the names that JAX holds back until the backend of `platform` starts.

    Until then, JAX silently accepts a second handler for a name. When the backend starts, JAX complains, keeps the
    first handler and, on CUDA, loses everything that was registered after the second one. The table is private to
    jaxlib. If it is missing, only JAX's own check remains, which works once the backend runs.
    """
    try:
        from jaxlib import xla_client

        name = xla_client.xla_platform_names.get(platform, platform)
        return {entry[0] for entry in xla_client._custom_callback.get(name, ())}
    except (AttributeError, ImportError, IndexError, TypeError):
        return set()


def _refusal(target: str, platform: str, reason: str) -> KernelRegistrationError:
    return KernelRegistrationError(
        f"JAX refused the target {target!r} on {platform}: {reason}. If other code owns the name, load under "
        "another name= or target_prefix=. No code became live or was replaced. JAX may know some of the new names, but "
        "calls of them fail until a load succeeds."
    )


def _warn_about_graphs(target: str, info: _core.FunctionInfo, platform: str) -> None:
    if platform == "CUDA" and info.traits & _COMMAND_BUFFER_COMPATIBLE:
        warn(
            f"{target!r} was replaced. A CUDA graph that JAX captured earlier replays the old code until JAX captures "
            "it again (by a new jax.jit, or after jax.clear_caches()). To keep a kernel out of CUDA graphs, load it "
            "with allow_cuda_graph=False; in this process, use another name."
        )
