// SPDX-License-Identifier: Apache-2.0
// Names nothing of the runtime but threadIdx.
// @BE run
__global__ void run(const float* x, float* y) {
  const int i = threadIdx.x;
  y[i] = x[i] + x[255 - i];
}
