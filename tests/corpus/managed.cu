// SPDX-License-Identifier: Apache-2.0
// A __managed__ variable.
#include "brainevent/common.h"

__managed__ float factor = 1.5f;

__global__ void scale(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x] * factor; }

// @BE run
void run(const BE::Tensor x, BE::Tensor y, cudaStream_t stream) {
  scale<<<1, 256, 0, stream>>>(x.data_ptr<const float>(), y.data_ptr<float>());
}
