// SPDX-License-Identifier: Apache-2.0
// typeid in host code.
#include <typeinfo>

#include "brainevent/common.h"

__global__ void add(const float* x, float* y, float by) { y[threadIdx.x] = x[threadIdx.x] + by; }

// @BE run
void run(const BE::Tensor x, BE::Tensor y, cudaStream_t stream) {
  const bool same = typeid(x) == typeid(y);
  add<<<1, 256, 0, stream>>>(x.data_ptr<const float>(), y.data_ptr<float>(), same ? 1.0f : 2.0f);
}
