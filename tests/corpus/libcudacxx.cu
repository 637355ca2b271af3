// SPDX-License-Identifier: Apache-2.0
// CUDA's own standard library.
#include <cuda/std/array>
#include <cuda/std/limits>

// @BE run
__global__ void run(const float* x, float* y) {
  const cuda::std::array<float, 2> pair = {x[threadIdx.x], cuda::std::numeric_limits<float>::epsilon()};
  y[threadIdx.x] = pair[0] + pair[1];
}
