# SPDX-License-Identifier: Apache-2.0
"""Load a kernel whose compilation does not end; print the error."""

import kernels

import kernix

try:
    kernix.load_cpp_inline("endless", kernels.ENDLESS, extra_cflags=kernels.ENDLESS_FLAGS, auto_register=False)
except kernix.KernelError as error:
    print(type(error).__name__, error)
