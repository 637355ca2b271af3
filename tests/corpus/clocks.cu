// SPDX-License-Identifier: Apache-2.0
// Clocks and sleeping, whose values are not used.
// @BE run
__global__ void run(const float* x, float* y) {
  const long long start = clock64();
  __nanosleep(10);
  y[threadIdx.x] = clock64() >= start && clock() != -1 ? x[threadIdx.x] : 0;
}
