// SPDX-License-Identifier: Apache-2.0
// Writes through a surface object, and reads the array back.
#include "brainevent/common.h"

__global__ void store(const float* x, cudaSurfaceObject_t surface) {
  surf2Dwrite(x[threadIdx.x] * 3, surface, static_cast<int>(threadIdx.x % 16 * sizeof(float)), threadIdx.x / 16);
}

// @BE run
void run(const BE::Tensor x, BE::Tensor y, cudaStream_t stream) {
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  BE_CUDA_CHECK(cudaMallocArray(&resource.res.array.array, &format, 16, 16, cudaArraySurfaceLoadStore));
  cudaSurfaceObject_t surface = 0;
  BE_CUDA_CHECK(cudaCreateSurfaceObject(&surface, &resource));
  store<<<1, 256, 0, stream>>>(x.data_ptr<const float>(), surface);
  BE_CUDA_CHECK(cudaMemcpy2DFromArrayAsync(y.data_ptr<float>(), 64, resource.res.array.array, 0, 0, 64, 16,
                                           cudaMemcpyDeviceToDevice, stream));
  BE_CUDA_CHECK(cudaStreamSynchronize(stream));
  BE_CUDA_CHECK(cudaDestroySurfaceObject(surface));
  BE_CUDA_CHECK(cudaFreeArray(resource.res.array.array));
}
