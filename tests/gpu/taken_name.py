# SPDX-License-Identifier: Apache-2.0
"""Register a name with JAX directly, then load a kernel of that name: kernix refuses, and the first handler stays.

Arguments: the store; `started` or `waiting`, depending on whether JAX's GPU backend is already running.
"""

import sys

import jax
import numpy as np
from reference_kernels import VECTOR_ADD

import kernix

TARGET = "gpu_taken.vector_add"

kernix.set_cache_dir(sys.argv[1])
if sys.argv[2] == "started":
    jax.devices("gpu")
module = kernix.load_cuda_inline("gpu_taken", VECTOR_ADD, auto_register=False)
jax.ffi.register_ffi_target(TARGET, jax.ffi.pycapsule(module.get_handler("vector_add")), platform="CUDA")
changed = VECTOR_ADD.replace("a[idx] + b[idx]", "a[idx] - b[idx]")
try:
    kernix.load_cuda_inline("gpu_taken", changed)
except kernix.KernelRegistrationError as error:
    print(error)
else:
    sys.exit("the name was not refused")
assert TARGET not in kernix.list_registered_targets()
x = np.ones(4, np.float32)
print(jax.ffi.ffi_call(TARGET, jax.ShapeDtypeStruct(x.shape, x.dtype))(x, x))
