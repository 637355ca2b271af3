# SPDX-License-Identifier: Apache-2.0
"""Load the constant kernel NAME VALUE without JAX; print whether it was a hit, and its path."""

import sys

import kernels

import kernix

module = kernix.load_cpp_inline(sys.argv[1], kernels.constant(sys.argv[2]), auto_register=False)
assert "jax" not in sys.modules
print(module.cache_hit, module.path)
