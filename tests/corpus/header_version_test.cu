// SPDX-License-Identifier: Apache-2.0
// Code that depends on version macros of the toolkit.
// @BE run
__global__ void run(const float* x, float* y) {
#if CUDART_VERSION >= 12000 && __CUDACC_VER_MAJOR__ >= 12 && __CUDA_ARCH__ >= 700
  y[threadIdx.x] = x[threadIdx.x] + 1;
#else
  y[threadIdx.x] = x[threadIdx.x] + 2;
#endif
}
