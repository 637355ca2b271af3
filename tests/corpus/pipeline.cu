// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies into shared memory.
#include <cuda_pipeline.h>

// @BE run
__global__ void run(const float* x, float* y) {
  __shared__ float copy[256];
  __pipeline_memcpy_async(copy + threadIdx.x, x + threadIdx.x, sizeof(float));
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  y[threadIdx.x] = copy[255 - threadIdx.x];
}
