// SPDX-License-Identifier: Apache-2.0
// __constant__ memory that a host function fills through its symbol.
#include "brainevent/common.h"

__constant__ float weights[4];

__global__ void weigh(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x] * weights[threadIdx.x % 4]; }

// @BE run
void run(const BE::Tensor x, BE::Tensor y, cudaStream_t stream) {
  BE_CUDA_CHECK(cudaMemcpyToSymbolAsync(weights, x.data_ptr<const float>(), sizeof(weights), 0,
                                        cudaMemcpyDeviceToDevice, stream));
  weigh<<<1, 256, 0, stream>>>(x.data_ptr<const float>(), y.data_ptr<float>());
}
