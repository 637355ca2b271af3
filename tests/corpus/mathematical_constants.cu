// SPDX-License-Identifier: Apache-2.0
// Constants of C and of CUDA.
#include <math_constants.h>

// @BE run
__global__ void run(const float* x, float* y) {
  const float v = x[threadIdx.x];
  y[threadIdx.x] = v > 1e30f ? CUDART_INF_F : v < -1e30f ? NAN : v * CUDART_PI_F + static_cast<float>(M_E);
}
