# SPDX-License-Identifier: Apache-2.0
"""A drop-in for the kernel loaders of ``brainevent``.

After :func:`install`, kernixd compiles every kernel that is loaded through that package, including the kernels of the
package's own operators. The package's signatures, exceptions and return types stay the same, and no code changes.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import importlib.machinery
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

import kernix
from kernix._lock import ForkSafeLock
from kernix.compat.phrases import translate

_lock = ForkSafeLock()
_layer: _Layer | None = None


def install() -> None:
    """Route brainevent's loaders to kernixd, in every module of the package, until :func:`uninstall`.

    It routes ``load_cuda_inline``, ``load_cuda_file``, ``load_cuda_dir``, ``load_cpp_inline``, ``load_cpp_file``,
    ``register_ffi_target``, ``list_registered_targets``, ``set_cache_dir``, ``get_cache_dir``, ``clear_cache`` and
    ``print_diagnostics``. If the package has no module ``brainevent.kernix``, it can be imported afterwards. Installing
    twice does nothing. A name that a module outside the package imported earlier is not routed; a name that it imports
    now stays routed after :func:`uninstall`. A process that multiprocessing spawns installs the layer again.

    Raises
    ------
    ImportError
        If brainevent is not installed.
    """
    global _layer
    with _lock:
        if _layer is None:
            layer = _Layer(importlib.import_module("brainevent"))
            layer.install()
            _layer = layer


def uninstall() -> None:
    """Restore brainevent's own loaders. Loaded kernels stay loaded. Does nothing if no layer is installed."""
    global _layer
    with _lock:
        if _layer is not None:
            _layer.uninstall()
            _layer = None


#: Names of the reference's parameters that differ in kernix.
_RENAMED = {"filepath": "path"}

_DISCOVERY = "BRAINEVENT_NVCC_PREFER"


class _Layer:
    """All replacements that :func:`install` puts into the package."""

    def __init__(self, package: ModuleType) -> None:
        self._package = package
        self._module_type = _routed_module_type(package.CompiledModule)
        self._request_error = type(
            "KernelRequestError", (package.KernelError, ValueError), {"__module__": "brainevent"}
        )
        self._discovery_before = os.environ.get(_DISCOVERY)
        self._made_module = False
        routes = {name: ours for name, ours in self._routes().items() if hasattr(package, name)}
        self._originals = {name: getattr(package, name) for name in routes}
        self._routed = {name: self._wrap(self._originals[name], ours) for name, ours in routes.items()}

    def _routes(self) -> dict[str, Callable[..., Any]]:
        return {
            "load_cuda_inline": self._load_cuda(kernix.load_cuda_inline),
            "load_cuda_file": self._load_cuda(kernix.load_cuda_file),
            "load_cuda_dir": self._load_cuda(kernix.load_cuda_dir),
            "load_cpp_inline": self._load(kernix.load_cpp_inline),
            "load_cpp_file": self._load(kernix.load_cpp_file),
            "register_ffi_target": self._register,
            "list_registered_targets": self._list_targets,
            "set_cache_dir": kernix.set_cache_dir,
            "get_cache_dir": kernix.get_cache_dir,
            "clear_cache": kernix.clear_cache,
            "print_diagnostics": self._print_diagnostics,
        }

    def install(self) -> None:
        name = f"{self._package.__name__}.kernix"
        if importlib.util.find_spec(name) is None:
            self._make_module(name)
        else:
            importlib.import_module(name)
        if not hasattr(self._package, "KernelRequestError"):
            vars(self._package)["KernelRequestError"] = self._request_error  # where pickle looks for it
        self._exchange(self._originals, self._routed)

    def uninstall(self) -> None:
        self._exchange(self._routed, self._originals)
        if vars(self._package).get("KernelRequestError") is self._request_error:
            del vars(self._package)["KernelRequestError"]
        if self._made_module:
            sys.modules.pop(f"{self._package.__name__}.kernix", None)
            delattr(self._package, "kernix")
        if self._discovery_before is None:
            os.environ.pop(_DISCOVERY, None)
        else:
            os.environ[_DISCOVERY] = self._discovery_before

    def _make_module(self, name: str) -> None:
        """Make the module that the package's pages import from. It has all names that the package exports."""
        module = ModuleType(name, "The kernel loaders of brainevent, routed to kernixd.")
        module.__dict__.update(self._originals, CompiledModule=self._package.CompiledModule)
        module.__spec__ = importlib.machinery.ModuleSpec(name, loader=None)
        exported = [each for each in dir(self._package) if not each.startswith("_")]
        module.__dict__.update(__all__=exported, __dir__=lambda: exported, __getattr__=self._exported_by_package)
        sys.modules[name] = module
        setattr(self._package, "kernix", module)  # noqa: B010 (type checkers do not know the attribute)
        self._made_module = True

    def _exported_by_package(self, name: str) -> Any:
        if name.startswith("__"):  # attributes that make a module a package, such as __path__, are its own
            raise AttributeError(f"module '{self._package.__name__}.kernix' has no attribute {name!r}")
        return getattr(self._package, name)

    def _exchange(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """Replace each function of `old` by the one of `new` in all of the package's modules."""
        for module in self._modules():
            for attribute, value in list(vars(module).items()):
                for name, function in old.items():
                    if value is function:
                        setattr(module, attribute, new[name])

    def _modules(self) -> Iterator[ModuleType]:
        prefix = f"{self._package.__name__}."
        for name, module in list(sys.modules.items()):
            if module is self._package or (name.startswith(prefix) and isinstance(module, ModuleType)):
                yield module

    def _wrap(self, original: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function with the signature and exceptions of `original` that calls `ours`."""
        signature = inspect.signature(original)

        @functools.wraps(original)
        def routed(*args: Any, **kwargs: Any) -> Any:
            arguments = _by_keyword(signature.bind(*args, **kwargs))
            try:
                return ours(**arguments)
            except kernix.KernelError as error:
                raise self._translated(error, "C++ " if "cpp" in original.__name__ else "") from error

        return routed

    def _load(self, load: Callable[..., kernix.CompiledModule]) -> Callable[..., Any]:
        def loaded(**arguments: Any) -> Any:
            return self._module_type(load(**arguments))

        return loaded

    def _load_cuda(self, load: Callable[..., kernix.CompiledModule]) -> Callable[..., Any]:
        def loaded(compute_capability: Any = None, extra_ldflags: Any = None, **arguments: Any) -> Any:
            self._follow_discovery()
            wanted = compute_capability or self._package.config.get_compute_capability()
            flags, folders = _linker_flags(extra_ldflags or [])
            _open_libraries(flags, folders)
            return self._load(load)(compute_capability=_architectures(wanted), extra_ldflags=flags, **arguments)

        return loaded

    def _follow_discovery(self) -> None:
        """Use the package's configured order to look for nvcc, or else its default order: wheels first."""
        toolchain = sys.modules.get(f"{self._package.__name__}._op.kernix_toolchain")
        preference = getattr(toolchain, "get_nvcc_discovery", lambda: "pip")()
        if os.environ.get(_DISCOVERY) != preference:
            os.environ[_DISCOVERY] = preference

    def _register(self, target_name: str, module: Any, func_name: str, **options: Any) -> None:
        if not isinstance(module, self._module_type):
            self._originals["register_ffi_target"](target_name, module, func_name, **options)
            return
        module.get_handler(func_name)
        options.pop("content_id", None)  # kernix knows the content of the code
        options.setdefault("platform", "CUDA")
        kernix.register_ffi_target(target_name, module.kernix, func_name, **options)

    def _list_targets(self) -> list[str]:
        return sorted({*kernix.list_registered_targets(), *self._originals["list_registered_targets"]()})

    def _print_diagnostics(self) -> None:
        print(f"{'':<6}{'brainevent':<14}{self._package.__version__}, its kernels routed to kernixd")
        kernix.print_diagnostics()

    def _translated(self, error: kernix.KernelError, language: str) -> Exception:
        """Convert one of kernix' exceptions to the package's."""
        translated: Exception
        if isinstance(error, kernix.KernelCompilationError):
            _, message = translate(error, error.message, language)
            translated = self._package.CompilationError(message, error.compiler_output, error.command)
            return translated
        name, message = translate(error, str(error), language)
        known = self._request_error if name == "KernelRequestError" else getattr(self._package, name, None)
        translated = (known or self._package.KernelError)(message)
        return translated


def _routed_module_type(base: Any) -> Any:
    """Return a class for modules loaded by kernix that are also modules of the package."""

    class CompiledModule(base):  # type: ignore[misc]
        """A module loaded by kernix, with the interface that the package's users and operators expect.

        ``module.kernix`` is the :class:`kernix.CompiledModule`; its attributes and functions can be used directly.
        """

        def __init__(self, module: kernix.CompiledModule) -> None:
            self.kernix = module

        @property
        def path(self) -> str:
            return self.kernix.path

        @property
        def content_hash(self) -> str:
            return f"sha256:{self.kernix.content_hash[:16]}"

        @property
        def function_names(self) -> list[str]:
            return self.kernix.function_names

        def get_handler(self, name: str) -> Any:
            if name not in self.kernix:
                raise KeyError(f"Function {name!r} not found in module. Available: {self.function_names}")
            return self.kernix.get_handler(name)

        def __getitem__(self, name: str) -> Any:
            return self.kernix[name]

        def __contains__(self, name: object) -> bool:
            return name in self.kernix

        def __iter__(self) -> Iterator[str]:
            return iter(self.kernix)

        def __dir__(self) -> list[str]:
            return sorted({*super().__dir__(), *dir(self.kernix)})

        def __getattr__(self, name: str) -> Any:
            if name == "kernix":  # while a copy is being made
                raise AttributeError(name)
            return getattr(self.kernix, name)

        def __repr__(self) -> str:
            return repr(self.kernix)

    return CompiledModule


def _by_keyword(bound: inspect.BoundArguments) -> dict[str, Any]:
    """Return the arguments of a call under kernix' names."""
    arguments: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        if bound.signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            arguments.update(value)
        else:
            arguments[_RENAMED.get(name, name)] = value
    return arguments


def _linker_flags(tokens: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the flags of a CUDA load for kernix, and the folders in which its libraries are searched at run time.

    The package passes each token to the linker itself. kernix passes flags to the compiler and writes no user's
    folder into a library.
    """
    flags: list[str] = []
    folders: list[str] = []
    rest = iter(tokens)
    for token in rest:
        name, equals, value = token.partition("=")
        if name.lstrip("-") in ("rpath", "rpath-link", "R"):
            folders += (value if equals else next(rest, "")).split(":")
        elif token.startswith(("-L", "-l", "-Wl,")) or os.path.basename(token) != token:
            flags.append(token)
        else:
            flags.append(f"-Wl,{token}")
    return flags, folders


def _open_libraries(flags: Sequence[str], folders: Sequence[str]) -> None:
    """Open the shared libraries that `flags` name, if the package's own build would have found them."""
    for flag in flags:
        if flag.startswith("-l"):
            name = f"lib{flag[2:]}.so"
            paths = [os.path.join(folder, name) for folder in folders]
        else:
            paths = [flag] if re.search(r"\.so(\.[0-9]+)*$", flag) else []
        for path in filter(os.path.exists, paths):
            ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
            break


def _architectures(wanted: Any) -> str | None:
    """Convert `compute_capability`, or the package's configured value, to kernix' form."""
    if not wanted:
        return None
    names = [wanted] if isinstance(wanted, str) else wanted
    return ",".join(str(name).replace("compute_", "sm_") for name in names)
