// SPDX-License-Identifier: Apache-2.0
// A host function that launches, with checks of the runtime API.
#include "brainevent/common.h"

__global__ void scale(const float* x, float* y, int64_t n) {
  const int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
}

// @BE run
void run(const BE::Tensor x, BE::Tensor y, cudaStream_t stream) {
  BE_CHECK(x.numel() == y.numel()) << "got " << x.numel() << " and " << y.numel();
  scale<<<(x.numel() + 63) / 64, 64, 0, stream>>>(x.data_ptr<const float>(), y.data_ptr<float>(), x.numel());
  BE_CHECK_KERNEL_LAUNCH();
}
