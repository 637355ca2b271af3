# SPDX-License-Identifier: Apache-2.0
"""Sources that several tests compile."""

import pathlib
import sys

# tests/gpu is copied to GPU machines without us, so what both have is there.
sys.path.append(str(pathlib.Path(__file__).parents[1] / "gpu"))

from hopper_kernels import LAUNCHES, MAPPED, TILE, WGMMA
from launched_kernels import LAUNCHED
from reference_kernels import ADD_BY_REFERENCE, SCALE_BY, VECTOR_ADD

__all__ = [
    "ADD_BY_REFERENCE",
    "ADD_ONE",
    "ENDLESS",
    "ENDLESS_FLAGS",
    "LAUNCHED",
    "LAUNCHES",
    "MAPPED",
    "SCALE_BY",
    "TILE",
    "VECTOR_ADD",
    "WGMMA",
    "constant",
]

ADD_ONE = """
#include "brainevent/common.h"

// @BE add_one arg ret
void add_one(const BE::Tensor x, BE::Tensor y) {
    const float* in = x.data_ptr<const float>();
    float* out = y.data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); ++i) out[i] = in[i] + 1.0f;
}
"""

# A compilation that goes on until it is cancelled: the compiler counts further than it can.
ENDLESS = """
#include "brainevent/common.h"
constexpr unsigned long count(unsigned long n) {
    unsigned long sum = 0;
    for (unsigned long i = 0; i < n; ++i)
        for (unsigned long j = 0; j < n; ++j) sum += i ^ j;
    return sum;
}
constexpr unsigned long endless = count(1ul << 30);
// @BE never arg ret
void never(const BE::Tensor x, BE::Tensor y) { *y.data_ptr<unsigned long>() = endless; }
"""
ENDLESS_FLAGS = ["-fconstexpr-ops-limit=9223372036854775807", "-fconstexpr-loop-limit=2147483647"]


def constant(value):
    """Return a source whose function ``value`` writes `value` to its result."""
    return f"""
#include "brainevent/common.h"
// @BE value arg ret
void value(const BE::Tensor x, BE::Tensor y) {{ *y.data_ptr<float>() = {value}; }}
"""
