// SPDX-License-Identifier: Apache-2.0
// Parameter packs and fold expressions.
template <typename... Values>
__device__ float Sum(Values... values) {
  return (values + ... + 0.0f);
}

// @BE run
__global__ void run(const float* x, float* y) { y[threadIdx.x] = Sum(x[threadIdx.x], 1, 2u, 3.0); }
