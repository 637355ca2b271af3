// SPDX-License-Identifier: Apache-2.0
// Reductions of a warp that compute capability 8.0 brought.
// @BE run
__global__ void run(const float* x, float* y) {
  const unsigned value = threadIdx.x * 3;
  y[threadIdx.x] = x[threadIdx.x] + static_cast<float>(__reduce_add_sync(~0u, value) + __reduce_max_sync(~0u, value));
}
