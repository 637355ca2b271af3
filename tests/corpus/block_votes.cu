// SPDX-License-Identifier: Apache-2.0
// Barriers that count.
// @BE run
__global__ void run(const float* x, float* y) {
  const int positive = __syncthreads_count(x[threadIdx.x] > 0);
  y[threadIdx.x] = static_cast<float>(positive + 2 * __syncthreads_or(x[threadIdx.x] > 3));
}
