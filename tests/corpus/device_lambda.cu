// SPDX-License-Identifier: Apache-2.0
// Lambdas inside device code.
// @BE run
__global__ void run(const float* x, float* y) {
  const int i = threadIdx.x;
  const auto square = [](float v) { return v * v; };
  float sum = 0;
  const auto add = [&sum, i](auto v) { sum += v + i; };
  add(square(x[i]));
  y[i] = sum;
}
