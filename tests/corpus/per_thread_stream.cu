// SPDX-License-Identifier: Apache-2.0
// A flag that gives functions of the runtime API other names.
// flags: --default-stream=per-thread
#include "brainevent/common.h"

__global__ void copy(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }

// @BE run
void run(const BE::Tensor x, BE::Tensor y, cudaStream_t stream) {
  copy<<<1, 256, 0, stream>>>(x.data_ptr<const float>(), y.data_ptr<float>());
  BE_CUDA_CHECK(cudaMemcpyAsync(y.data_ptr<float>(), x.data_ptr<const float>(), 8, cudaMemcpyDeviceToDevice, stream));
}
