// SPDX-License-Identifier: Apache-2.0
// pow() of mixed types: which overload decides between float and double.
// @BE run
__global__ void run(const float* x, float* y) {
  const int i = threadIdx.x;
  const float base = x[i] * x[i] + 1;
  y[i] = pow(base, 2) + static_cast<float>(pow(static_cast<double>(base), 0.5f)) + powf(base, 1.5f) + pow(base, base);
}
