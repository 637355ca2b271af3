// SPDX-License-Identifier: Apache-2.0
// cudaLaunchKernelEx with an attribute.
#include "brainevent/common.h"

__global__ void shift(const float* x, float* y, int by) { y[threadIdx.x] = x[(threadIdx.x + by) % 256]; }

// @BE run
void run(const BE::Tensor x, BE::Tensor y, cudaStream_t stream) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 0;
  cudaLaunchConfig_t launch = {};
  launch.gridDim = dim3(1);
  launch.blockDim = dim3(256);
  launch.stream = stream;
  launch.attrs = &attribute;
  launch.numAttrs = 1;
  BE_CUDA_CHECK(cudaLaunchKernelEx(&launch, shift, x.data_ptr<const float>(), y.data_ptr<float>(), 5));
}
