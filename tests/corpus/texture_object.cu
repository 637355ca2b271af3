// SPDX-License-Identifier: Apache-2.0
// Reads through a texture object.
#include "brainevent/common.h"

__global__ void fetch(cudaTextureObject_t texture, float* y) {
  y[threadIdx.x] = tex1Dfetch<float>(texture, static_cast<int>(threadIdx.x ^ 1));
}

// @BE run
void run(const BE::Tensor x, BE::Tensor y, cudaStream_t stream) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = const_cast<float*>(x.data_ptr<const float>());
  resource.res.linear.desc = cudaCreateChannelDesc<float>();
  resource.res.linear.sizeInBytes = static_cast<size_t>(x.nbytes());
  cudaTextureDesc description = {};
  description.readMode = cudaReadModeElementType;
  cudaTextureObject_t texture = 0;
  BE_CUDA_CHECK(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  fetch<<<1, 256, 0, stream>>>(texture, y.data_ptr<float>());
  BE_CUDA_CHECK(cudaStreamSynchronize(stream));
  BE_CUDA_CHECK(cudaDestroyTextureObject(texture));
}
