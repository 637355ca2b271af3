// SPDX-License-Identifier: Apache-2.0
// memcpy() and memset() in device code.
// @BE run
__global__ void run(const float* x, float* y) {
  float four[4];
  memset(four, 0, sizeof(four));
  memcpy(four + 1, x + threadIdx.x, sizeof(float));
  y[threadIdx.x] = four[0] + four[threadIdx.x % 4] + four[1];
}
