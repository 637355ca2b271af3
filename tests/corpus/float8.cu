// SPDX-License-Identifier: Apache-2.0
// Conversions of eight-bit floating point.
#include <cuda_fp8.h>

// @BE run
__global__ void run(const float* x, float* y) {
  const int i = threadIdx.x;
  y[i] = static_cast<float>(__nv_fp8_e4m3(x[i])) - static_cast<float>(__nv_fp8_e5m2(x[i]));
}
