// SPDX-License-Identifier: Apache-2.0
// cudaLaunchKernel with a function pointer, and a size from the occupancy calculator.
#include "brainevent/common.h"

__global__ void halve(const float* x, float* y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = x[i] / 2;
}

// @BE run
void run(const BE::Tensor x, BE::Tensor y, cudaStream_t stream) {
  int grid = 0, block = 0;
  BE_CUDA_CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, halve));
  const float* from = x.data_ptr<const float>();
  float* to = y.data_ptr<float>();
  int n = x.numel_checked_int();
  void* arguments[] = {&from, &to, &n};
  BE_CUDA_CHECK(cudaLaunchKernel(halve, dim3(1), dim3(block < 256 ? block : 256), arguments, 0, stream));
}
