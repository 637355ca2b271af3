// SPDX-License-Identifier: Apache-2.0
// __trap() and __brkpt() where they are not reached.
// @BE run
__global__ void run(const float* x, float* y) {
  if (blockDim.x > 512) __trap();
  y[threadIdx.x] = x[threadIdx.x];
}
