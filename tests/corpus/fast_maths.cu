// SPDX-License-Identifier: Apache-2.0
// A flag that gives functions and operators another meaning.
// flags: --use_fast_math
// @BE run
__global__ void run(const float* x, float* y) {
  const float v = x[threadIdx.x];
  y[threadIdx.x] = sinf(v) / 3.7f + sqrtf(fabsf(v));
}
