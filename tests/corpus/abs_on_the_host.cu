// SPDX-License-Identifier: Apache-2.0
// abs() of a float in host code.
#include "brainevent/common.h"

__global__ void fill(const float* x, float* y, float by) { y[threadIdx.x] = x[threadIdx.x] + by; }

// @BE run
void run(const BE::Tensor x, BE::Tensor y, cudaStream_t stream) {
  const float by = abs(-0.5f * static_cast<float>(x.ndim()));
  fill<<<1, 256, 0, stream>>>(x.data_ptr<const float>(), y.data_ptr<float>(), by);
}
