# SPDX-License-Identifier: Apache-2.0
"""Call the example package's kernel, and then compile; print what comes of both, and which of the arguments can run."""

import json
import os
import sys

import jax.numpy as jnp
import kernix_example

import kernix


def error_of(load):
    """Return the error of a load, as text, or an empty one."""
    try:
        load()
    except kernix.KernelError as error:
        return f"{type(error).__name__}: {error}"
    return ""


source = '#include "brainevent/common.h"\n// @BE f\nvoid f(BE::In<float> x, BE::Out<float> y) {}\n'
print(
    json.dumps(
        {
            "ewma": kernix_example.ewma(jnp.array([[1.0, 3.0, 5.0]]), 0.5).tolist(),
            "error": error_of(lambda: kernix.load_cpp_inline("not_in_the_bundle", source)),
            "can run": [path for path in sys.argv[1:] if os.access(path, os.X_OK)],
        }
    )
)
