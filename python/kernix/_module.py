# SPDX-License-Identifier: Apache-2.0
"""A compiled kernel library, as its user sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernix import _core

__all__ = ["CompiledModule"]


class CompiledModule:
    """A compiled module, loaded into this process.

    Made by the ``load_...`` functions. It stays loaded for the life of the process, since JAX may hold its handlers for
    ever.
    """

    __slots__ = ("__weakref__", "_core", "_function_names", "_platform")

    def __init__(self, core: _core.Module, platform: str) -> None:
        self._core = core
        self._platform = platform
        self._function_names = tuple(function.name for function in core.functions)

    @property
    def name(self) -> str:
        """Name that the module was loaded under."""
        return self._core.name

    @property
    def path(self) -> str:
        """Path of the shared library."""
        return self._core.path

    @property
    def function_names(self) -> list[str]:
        """Names of the functions, in the order of the request or of the annotations in the source."""
        return list(self._function_names)

    @property
    def platform(self) -> str:
        """JAX platform that the functions are made for: ``"cpu"`` or ``"CUDA"``."""
        return self._platform

    @property
    def key(self) -> str:
        """SHA-256, hexadecimal, of everything that can change the library."""
        return self._core.key

    @property
    def content_hash(self) -> str:
        """SHA-256, hexadecimal, of the library itself."""
        return self._core.artifact_digest

    @property
    def cache_hit(self) -> bool:
        """Whether the load was served without a build."""
        return self._core.cache_hit

    def arg_spec(self, name: str) -> list[str]:
        """Return the tokens of a function, with every type written out.

        Parameters
        ----------
        name : str
            Name of a function of this module.

        Returns
        -------
        list of str
            For example ``["arg", "ret", "attr.scale:float32"]``.
        """
        self._check(name)
        return next(list(function.tokens) for function in self._core.functions if function.name == name)

    def get_handler(self, name: str) -> Any:
        """Return the XLA FFI handler of a function.

        It is the code of *this* module, whatever is live under a target name; :func:`kernix.register_ffi_target` makes
        a target that can be replaced later.

        Parameters
        ----------
        name : str
            Name of a function of this module.

        Returns
        -------
        ctypes function pointer
            What ``jax.ffi.pycapsule`` takes.

        Raises
        ------
        KeyError
            When the module has no such function.
        """
        import ctypes

        self._check(name)
        return ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(self._core.address(name))

    def _check(self, name: str) -> None:
        if name not in self._function_names:
            raise KeyError(f"no function {name!r} in module {self.name!r}; it has {self.function_names}")

    def __repr__(self) -> str:
        return f"CompiledModule(path={self.path!r}, functions={self.function_names})"
