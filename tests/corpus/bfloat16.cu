// SPDX-License-Identifier: Apache-2.0
// Arithmetic and comparison of __nv_bfloat16.
#include <cuda_bf16.h>

// @BE run
__global__ void run(const float* x, float* y) {
  const int i = threadIdx.x;
  const __nv_bfloat16 b = __float2bfloat16(x[i]);
  const __nv_bfloat16 c = b > __nv_bfloat16(0.0f) ? b * b : -b;
  y[i] = __bfloat162float(__hmax(c, __float2bfloat16(0.5f)));
}
