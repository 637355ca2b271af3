// SPDX-License-Identifier: Apache-2.0
// assert() that only the runtime header brings.
// @BE run
__global__ void run(const float* x, float* y) {
  assert(blockDim.x == 256);
  y[threadIdx.x] = x[threadIdx.x];
}
