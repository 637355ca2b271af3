# SPDX-License-Identifier: Apache-2.0
"""The public class for a compiled kernel library, and the registration of its functions one by one."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex

from kernix import _core
from kernix._errors import KernelRequestError, short_errors, short_in_notebook, shortened
from kernix._lock import ForkSafeLock
from kernix.jax.targets import Code
from kernix.loading.request import check_text

if TYPE_CHECKING:
    from kernix.calling.function import KernelFunction
    from kernix.loading.trace import BuildTrace

_PLATFORMS = {"cpu": "cpu", "host": "cpu", "cuda": "CUDA", "gpu": "CUDA"}


class KernelResources(NamedTuple):
    """The resources of one kernel on one architecture. Sizes are in bytes.

    Attributes
    ----------
    name : str
        The kernel's C++ name, ``"add(float const*, float*, int)"``.
    symbol : str
        The kernel's symbol, as profilers show it.
    architecture : str
        ``"sm_90"``.
    registers : int
        Registers per thread.
    shared_memory : int
        Statically declared shared memory per block. The compiler does not know how much a launch adds.
    stack_frame : int
        Local memory per thread.
    spill_stores, spill_loads : int or None
        Bytes that a thread writes to local memory, and reads from it, because it lacks registers: the sum over the
        instructions. None if the machine code does not say, as before CUDA 12.6.
    constant_memory : int
        Constant memory in all banks.
    barriers : int
        ``__syncthreads()`` and similar; 0 if ptxas does not report them, as in CUDA 12.0.
    """

    name: str
    symbol: str
    architecture: str
    registers: int = 0
    shared_memory: int = 0
    stack_frame: int = 0
    spill_stores: int | None = None
    spill_loads: int | None = None
    constant_memory: int = 0
    barriers: int = 0

    def occupancy(self, block: SupportsIndex | Sequence[SupportsIndex], shared: SupportsIndex = 0) -> float | None:
        """Return the share of a multiprocessor's warps that run at once, from 0 to 1.

        Registers, shared memory and a multiprocessor's limits of warps and blocks bound it.

        Parameters
        ----------
        block : int or tuple of up to three
            The size of a block, as a launch has it.
        shared : int
            Bytes of shared memory that the launch adds for each block.

        Returns
        -------
        float or None
            0 if such a block does not fit. None if kernix does not know the limits of the architecture.
        """
        sizes = [operator.index(size) for size in (block if isinstance(block, Sequence) else [block])]
        added = operator.index(shared)
        if not 1 <= len(sizes) <= 3 or min(sizes) < 1:
            raise ValueError(f"block is {block!r}; it must be 1 to 3 numbers of threads, each at least 1")
        if added < 0:
            raise ValueError(f"shared is {added}; it must be a number of bytes, at least 0")
        # What is larger than this fits nowhere, whatever it is.
        largest = 2**31
        threads, added = min(math.prod(sizes), largest), min(added, largest)
        return _core.occupancy(self.architecture, self.registers, self.shared_memory, threads, added)


KernelResources.__module__ = "kernix"


class CompiledModule:
    """A compiled module, loaded into this process.

    The ``load_...`` functions return modules. A module stays loaded until the process ends, because JAX may keep its
    handlers.

    Its functions are attributes: ``module.vector_add(a, b)`` calls one (see :class:`kernix.KernelFunction`). If this
    class itself uses a function's name, write ``module["name"]``.
    """

    __module__ = "kernix"
    __slots__ = ("__weakref__", "_code", "_functions")

    def __init__(self, code: Code, *others: object, **more: object) -> None:
        if not isinstance(code, Code):
            raise TypeError(
                "kernix.load_cpp_file(...) and the other loads return CompiledModules. kernix.load_library(path) opens "
                "the output of `kernixctl compile -o`"
            )
        self._code = code
        self._functions: dict[str, KernelFunction] = {}

    def __getitem__(self, name: str) -> KernelFunction:
        """Return a function by its name."""
        if name not in self._functions:
            from kernix.calling.function import KernelFunction  # only calls need it, not loads

            try:
                self._functions.setdefault(name, KernelFunction(self._code, name))
            except KeyError as error:
                raise shortened(error)  # noqa: B904 (it is the same error)
        return self._functions[name]

    def __contains__(self, name: object) -> bool:
        """Return whether the module has a function of this name."""
        return name in self._code.function_names

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the functions, like a mapping."""
        return iter(self._code.function_names)

    def __getattr__(self, name: str) -> KernelFunction:
        if hasattr(type(self), name):  # while Python makes a copy: a slot that is not set yet
            raise AttributeError(f"{name} is not set")
        if name not in self._code.function_names:
            # With name=, Python's traceback adds no suggestion of its own.
            raise short_in_notebook(AttributeError(self._code.no_function(name, dir(self)), name=name))
        return self[name]

    def _ipython_key_completions_(self) -> list[str]:
        return self.function_names

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._code.function_names})

    def __copy__(self) -> CompiledModule:
        return self  # the library is loaded once and stays loaded

    def __deepcopy__(self, _: object) -> CompiledModule:
        return self

    @property
    def name(self) -> str:
        """Name under which the module was loaded."""
        return self._code.core.name

    @property
    def path(self) -> str:
        """Path of the shared library."""
        return self._code.core.path

    @property
    def function_names(self) -> list[str]:
        """Names of the functions, in the order of the request or of the annotations in the source."""
        return list(self._code.function_names)

    @property
    def platform(self) -> str:
        """JAX platform of the functions: ``"cpu"`` or ``"CUDA"``."""
        return self._code.platform

    @property
    def key(self) -> str:
        """SHA-256, hexadecimal, of everything that can change the library."""
        return self._code.core.key

    @property
    def content_hash(self) -> str:
        """SHA-256, hexadecimal, of the library itself."""
        return self._code.core.artifact_digest

    @property
    def origin(self) -> str:
        """Where the load has found the library.

        ``"built"``, ``"joined"`` (a build that another load had started), ``"cache"``, ``"upstream"`` (another node
        had built it), ``"bundle"``, or ``"file"`` (see :func:`kernix.load_library`).
        """
        return self._code.core.origin

    @property
    def cache_hit(self) -> bool:
        """Whether the load needed no build."""
        return self._code.core.cache_hit

    @property
    def build_ms(self) -> int:
        """How long the build took, in milliseconds; 0 if the load needed none."""
        return self._code.core.build_ms

    @property
    def miss_reason(self) -> str | None:
        """Why the load needed a build, such as ``"header x.h changed"``; None if it needed none.

        kernixd compares the load with your most similar load under this name.
        """
        return self._code.core.miss_reason or None

    @short_errors
    def arg_spec(self, name: str) -> list[str]:
        """Return the tokens of a function, with all types.

        Parameters
        ----------
        name : str
            Name of a function of this module.

        Returns
        -------
        list of str
            For example ``["arg", "ret", "attr.scale:float32"]``.
        """
        return list(self._code.info(name).tokens)

    @short_errors
    def get_handler(self, name: str) -> Any:
        """Return the XLA FFI handler of a function.

        The handler is the code of *this* module, even if other code is live under a target name. To make a target that
        can be replaced later, use :func:`kernix.register_ffi_target`.

        Parameters
        ----------
        name : str
            Name of a function of this module.

        Returns
        -------
        ctypes function pointer
            Accepted by ``jax.ffi.pycapsule``.

        Raises
        ------
        KeyError
            If the module has no such function.
        """
        import ctypes

        self._code.check(name)
        return ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(self._code.core.address(name))

    @short_errors
    def source(self, label: str | None = None) -> str:
        """Return the compiled source text: the sources, then a handler for each function.

        Parameters
        ----------
        label : str, optional
            For a load with ``separate=True``: the label of the source whose unit to return. Default: all units, one
            after another.
        """
        text = None if label == "" else self._code.core.source(check_text("label", _name_or_empty("label", label)))
        if text is None:
            raise KeyError(f"no source {label!r} in module {self.name!r}; it has {self._code.core.source_labels}")
        return text.decode(errors="replace")

    @short_errors
    def ptx(self, architecture: str | None = None) -> str:
        """Return the PTX from which the machine code was made. For modules that were loaded with ``keep=True``.

        Parameters
        ----------
        architecture : str, optional
            An architecture of the module, such as ``"sm_90"``. Default: the newest.
        """
        return self._code.core.ptx(_architecture(architecture)).decode(errors="replace")

    @short_errors
    def sass(self, architecture: str | None = None) -> str:
        """Return the disassembled machine code, as nvdisasm prints it. For modules that were loaded with ``keep=True``.

        Parameters
        ----------
        architecture : str, optional
            As for :meth:`ptx`.
        """
        return self._code.core.sass(_architecture(architecture)).decode(errors="replace")

    @short_errors
    def resources(self) -> list[KernelResources]:
        """Return the resources of each kernel (registers, shared memory, spills), for each architecture.

        kernix reads them from the library's machine code when you call this; a module from the cache has them, too. The
        machine code of ``debug=True`` and of ``-compress-mode`` is compressed: then load with ``keep=True``. For
        relocatable device code (``-rdc=true``), the figures are those after the device link.

        Raises
        ------
        KernelRequestError
            If the module is C++, or if its machine code cannot be read.
        """
        return [KernelResources(*fields) for fields in self._code.core.resources()]

    @short_errors
    def trace(self) -> BuildTrace:
        """Return the times of the library's build, by step. ``print()`` draws them.

        kernixd keeps it with the library: for a hit, it is the trace of the earlier build.

        Raises
        ------
        KernelRequestError
            If the library has left the cache, or if another node has built it. Then load it with
            ``force_rebuild=True``.
        """
        from kernix.loading.trace import trace_of  # only this needs it, not loads

        return trace_of(self._code.core)

    def __repr__(self) -> str:
        return f"CompiledModule(path={self.path!r}, functions={self.function_names})"

    def __str__(self) -> str:
        functions = "".join(f"\n  {self[name]._shown_signature()}" for name in self)
        return f"module {self.name!r} on {self.platform}, {origin_in_words(self._code.core)}{functions}"

    def _repr_html_(self) -> str:
        from html import escape

        rows = "".join(f"<tr><td><code>{escape(self[name]._shown_signature())}</code></td></tr>" for name in self)
        origin = escape(origin_in_words(self._code.core))
        return f"<b>{escape(self.name)}</b> on {self.platform}, {origin}<table>{rows}</table>"


@short_errors
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
    module._code.register(target_name, func_name, _platform_named(platform, module), replace=replace)


def _platform_named(name: str | None, module: CompiledModule) -> str:
    if name is None:
        return module.platform
    try:
        return _PLATFORMS[name.lower()]
    except KeyError:
        raise KernelRequestError(f'unknown platform {name!r}: use "cpu" or "CUDA"') from None


def hidden_functions(core: _core.Module) -> list[str]:
    """Return the functions that cannot be attributes of their module: its class has an attribute of that name."""
    return [name for name in core.function_names if hasattr(CompiledModule, name)]


def origin_in_words(core: _core.Module) -> str:
    """Return where the library of a load comes from, for people."""
    known = {
        "cache": "from the cache",
        "upstream": "from another node",
        "bundle": "from a bundle",
        "file": "from a file",
    }
    return known.get(core.origin) or f"built in {core.build_ms} ms: {core.miss_reason}"


#: Modules by the slot in libkernix' memo and the prefix of target names. A repeated load returns the same module.
#: The one that was used last comes last.
_modules: dict[tuple[int, str | None], CompiledModule] = {}
_modules_lock = ForkSafeLock()
_MOST_MODULES = 4096  # as many loads as libkernix remembers


def module_of(core: _core.Module, slot: int, prefix: str | None) -> CompiledModule:
    """Return the module of a load, which is the same for the same code, slot and prefix of target names."""
    with _modules_lock:
        module = _modules.pop((slot, prefix), None)
        if module is None or module._code.core is not core:
            module = CompiledModule(Code(core))
        if slot:
            _modules[slot, prefix] = module
        if len(_modules) > _MOST_MODULES:
            del _modules[next(iter(_modules))]
    return module


def forget_modules() -> None:
    """Forget the modules of all loads, because after a purge the same load returns a new module."""
    with _modules_lock:
        _modules.clear()


# libkernix takes an empty string where Python users pass None.


def _name_or_empty(parameter: str, name: str | None) -> str:
    if name is not None and not isinstance(name, str):
        raise TypeError(f"{parameter} is of type {type(name).__qualname__}; it must be a str or None")
    return name or ""


def _architecture(name: str | None) -> str:
    if name == "":
        raise ValueError('architecture is empty; name one, such as "sm_90", or omit it for the newest')
    return check_text("architecture", _name_or_empty("architecture", name))
