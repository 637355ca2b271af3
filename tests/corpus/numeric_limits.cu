// SPDX-License-Identifier: Apache-2.0
// Limits of the standard library in device code.
// flags: --expt-relaxed-constexpr
#include <limits>

// @BE run
__global__ void run(const float* x, float* y) {
  constexpr float kLeast = std::numeric_limits<float>::lowest();
  y[threadIdx.x] = x[threadIdx.x] > kLeast ? x[threadIdx.x] : static_cast<float>(std::numeric_limits<int>::digits);
}
