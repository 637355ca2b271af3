// SPDX-License-Identifier: Apache-2.0
// Dispatch over element types instantiates a kernel for each.
#include "brainevent/common.h"

template <typename T>
__global__ void negate(const T* x, T* y) {
  y[threadIdx.x] = -x[threadIdx.x];
}

// @BE run
void run(const BE::Tensor x, BE::Tensor y, cudaStream_t stream) {
  BE_DISPATCH_FLOATING(x.dtype(), scalar_t,
                       { negate<<<1, 256, 0, stream>>>(x.data_ptr<const scalar_t>(), y.data_ptr<scalar_t>()); });
  BE_CUDA_CHECK(cudaGetLastError());
}
