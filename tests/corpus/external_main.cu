// SPDX-License-Identifier: Apache-2.0
// Names of an unnamed namespace in a unit with an external function, after which nvcc calls the unit.
#include "brainevent/common.h"

int main() { return 0; }

namespace {
__device__ int offset = 2;
struct Shifted {};
template <class How>
__global__ void shift_kernel(const float* x, float* y) {
  y[threadIdx.x] = x[threadIdx.x] + offset;
}
}  // namespace

// @BE run
void run(const BE::Tensor x, BE::Tensor y, cudaStream_t stream) {
  shift_kernel<Shifted><<<1, 256, 0, stream>>>(x.data_ptr<const float>(), y.data_ptr<float>());
  BE_CHECK_KERNEL_LAUNCH();
}
