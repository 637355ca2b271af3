// SPDX-License-Identifier: Apache-2.0
// A loop over braces, which makes a std::initializer_list.
// flags: --expt-relaxed-constexpr
// @BE run
__global__ void run(const float* x, float* y) {
  float sum = 0;
  for (const float by : {1.0f, 2.0f, 3.0f}) sum += by * x[threadIdx.x];
  y[threadIdx.x] = sum;
}
