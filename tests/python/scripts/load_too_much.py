# SPDX-License-Identifier: Apache-2.0
"""Load a source that is larger than the daemon takes, then a small one; print the error of the first."""

import kernix

SMALL = """
#include "brainevent/common.h"
// @BE value arg ret
void value(const BE::Tensor x, BE::Tensor y) { *y.data_ptr<float>() = 1; }
"""

try:
    kernix.load_cpp_inline("large", SMALL + "// " + "x" * 200_000, auto_register=False)
except kernix.KernelError as error:
    print(type(error).__name__, error)
kernix.load_cpp_inline("small", SMALL, auto_register=False)
