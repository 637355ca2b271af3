// SPDX-License-Identifier: Apache-2.0
// printf() in device code, without an include.
// @BE run
__global__ void run(const float* x, float* y) {
  if (blockDim.x > 256) printf("a block of %u: %f\n", blockDim.x, x[0]);
  y[threadIdx.x] = x[threadIdx.x];
}
