// SPDX-License-Identifier: Apache-2.0
// Code that depends on which headers have been included.
// @BE run
__global__ void run(const float* x, float* y) {
#if defined(__CUDA_FP16_H__) || defined(__CUDA_FP16_TYPES_EXIST__)
  const float by = 1;
#else
  const float by = 2;
#endif
  y[threadIdx.x] = x[threadIdx.x] * by;
}
