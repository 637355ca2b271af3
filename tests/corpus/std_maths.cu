// SPDX-License-Identifier: Apache-2.0
// Mathematical functions by their names in namespace std.
// flags: --expt-relaxed-constexpr
#include <cmath>

// @BE run
__global__ void run(const float* x, float* y) {
  const float v = std::abs(x[threadIdx.x]) + 0.5f;
  y[threadIdx.x] = std::sqrt(v) + std::exp(-v) + std::fma(v, 2.0f, 1.0f) + std::max(v, 1.0f) + std::isnan(v);
}
