// SPDX-License-Identifier: Apache-2.0
// extern __shared__ memory of two types.
#include "brainevent/common.h"

__global__ void reverse(const float* x, float* y) {
  extern __shared__ unsigned char bytes[];
  float* copy = reinterpret_cast<float*>(bytes);
  copy[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = copy[blockDim.x - 1 - threadIdx.x];
}

// @BE run
void run(const BE::Tensor x, BE::Tensor y, cudaStream_t stream) {
  reverse<<<1, 256, 256 * sizeof(float), stream>>>(x.data_ptr<const float>(), y.data_ptr<float>());
}
