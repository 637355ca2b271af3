// SPDX-License-Identifier: Apache-2.0
// Arithmetic and intrinsics of __half and __half2.
#include <cuda_fp16.h>

// @BE run
__global__ void run(const float* x, float* y) {
  const int i = threadIdx.x;
  const __half h = __float2half(x[i]);
  const __half2 pair = __hfma2(__half2half2(h), __floats2half2_rn(0.5f, 2.0f), __float2half2_rn(1.0f));
  y[i] = __half2float(h * h + hsqrt(__habs(h))) + __low2float(pair) - __high2float(pair);
}
