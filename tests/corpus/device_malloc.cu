// SPDX-License-Identifier: Apache-2.0
// malloc() and free() in device code.
// @BE run
__global__ void run(const float* x, float* y) {
  float* copy = static_cast<float*>(malloc(sizeof(float)));
  *copy = x[threadIdx.x];
  y[threadIdx.x] = *copy - 1;
  free(copy);
}
