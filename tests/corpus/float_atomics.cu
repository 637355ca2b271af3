// SPDX-License-Identifier: Apache-2.0
// Atomic additions of float and double whose sums are exact.
// @BE run
__global__ void run(const float* x, float* y) {
  __shared__ float sum;
  __shared__ double wide;
  if (threadIdx.x == 0) wide = sum = 0;
  __syncthreads();
  atomicAdd(&sum, 1.0f);
  atomicAdd(&wide, 0.5);
  __syncthreads();
  y[threadIdx.x] = x[threadIdx.x] + sum + static_cast<float>(wide);
}
