// SPDX-License-Identifier: Apache-2.0
// Code that depends on the architecture.
// @BE run
__global__ void run(const float* x, float* y) {
#if __CUDA_ARCH__ >= 900
  y[threadIdx.x] = x[threadIdx.x] * 9;
#elif __CUDA_ARCH__ >= 800
  y[threadIdx.x] = x[threadIdx.x] * 8;
#else
  y[threadIdx.x] = x[threadIdx.x] * 7;
#endif
}
