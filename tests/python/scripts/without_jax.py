# SPDX-License-Identifier: Apache-2.0
"""Load a kernel and call it on a NumPy array where JAX is, as the argument says, "not imported" or "not installed"."""

import importlib.abc
import sys

import kernels
import numpy as np
import pytest

import kernix
from kernix.jax import targets


class NotInstalled(importlib.abc.MetaPathFinder):
    """Hides packages as if they were not installed: import fails, and ``find_spec`` finds nothing."""

    def __init__(self, finders):
        self._finders = finders

    def find_spec(self, name, path=None, target=None):
        """Ask the real finders, but for JAX."""
        if name.partition(".")[0] in ("jax", "jaxlib", "ml_dtypes"):
            return None
        found = (finder.find_spec(name, path, target) for finder in self._finders)
        return next(filter(None, found), None)


how = sys.argv[1]
if how == "not installed":
    sys.meta_path = [NotInstalled(sys.meta_path)]
    assert not targets.jax_is_installed()
module = kernix.load_cpp_inline("without_jax", kernels.ADD_ONE, auto_register=how == "not installed")
assert kernix.load_cpp_inline("without_jax", kernels.ADD_ONE, auto_register=how == "not installed") is module
print("add_one:", module.add_one(np.array([1, 2, 3], np.float32)))
assert not {"jax", "jaxlib", "ml_dtypes"} & set(sys.modules), "JAX was imported"
assert kernix.list_registered_targets() == []
if how == "not installed":
    with pytest.raises(kernix.KernelRegistrationError, match="cannot register 'name'"):
        kernix.register_ffi_target("name", module, "add_one")
