// SPDX-License-Identifier: Apache-2.0
// Variables with names of functions and types of C and CUDA.
// @BE run
__global__ void run(const float* x, float* y) {
  const int index = threadIdx.x;
  float sqrt = x[index], log = 2, y1 = 3, time = 4, atomicAdd = 5;
  struct div_t {
    float exp;
  } div{sqrt * log};
  y[index] = div.exp + y1 * time - atomicAdd;
}
