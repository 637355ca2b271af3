// SPDX-License-Identifier: Apache-2.0
// abs() of four types: each must find its own overload.
// @BE run
__global__ void run(const float* x, float* y) {
  const int i = threadIdx.x;
  const int whole = i - 128;
  const long long wide = whole * 3000000000ll;
  y[i] = abs(x[i]) + abs(whole) + static_cast<float>(abs(wide)) + static_cast<float>(abs(double(x[i])));
}
