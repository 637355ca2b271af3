// SPDX-License-Identifier: Apache-2.0
// A raw string that holds names, and a line that goes on.
#include "brainevent/common.h"

static const char kText[] = R"(sqrtf __syncthreads "atomicAdd")";

__global__ void add(const float* x, float* y, int by) { y[threadIdx.x] = x[threadIdx.x] + by; }

// @BE run
void run(const BE::Tensor x, BE::Tensor y, cudaStream_t stream) {
  add<<<1, 256, 0, stream>>>(x.data_ptr<const float>(), y.data_ptr<float>(), static_cast<int>(sizeof(kText)) + 1);
}
