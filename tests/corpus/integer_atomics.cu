// SPDX-License-Identifier: Apache-2.0
// Atomic operations on integers, of a block and of the system.
// @BE run
__global__ void run(const float* x, float* y) {
  __shared__ int sum;
  __shared__ unsigned most;
  __shared__ unsigned long long wide;
  if (threadIdx.x == 0) sum = most = wide = 0;
  __syncthreads();
  atomicAdd(&sum, static_cast<int>(x[threadIdx.x]));
  atomicMax(&most, threadIdx.x);
  atomicAdd_block(&wide, 3ull);
  atomicCAS(&most, 7u, 9u);
  __threadfence_block();
  __syncthreads();
  y[threadIdx.x] = static_cast<float>(sum + static_cast<int>(most) + static_cast<int>(wide));
}
