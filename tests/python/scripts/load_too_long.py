# SPDX-License-Identifier: Apache-2.0
"""Load a kernel whose compilation does not end, with `routed` through the layer for brainevent; print the error."""

import pathlib
import sys

import kernels

import kernix

load = kernix.load_cpp_inline
if "routed" in sys.argv:
    sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "stand_in"))
    import brainevent

    from kernix.compat import brainevent as compat

    compat.install()
    load = brainevent.load_cpp_inline
try:
    load("endless", kernels.ENDLESS, extra_cflags=kernels.ENDLESS_FLAGS, auto_register=False)
except Exception as error:
    print(type(error).__name__, error)
