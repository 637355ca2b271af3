// SPDX-License-Identifier: Apache-2.0
// new and delete in device code.
// @BE run
__global__ void run(const float* x, float* y) {
  float* copy = new float[2];
  copy[0] = x[threadIdx.x];
  y[threadIdx.x] = copy[0] + 1;
  delete[] copy;
}
