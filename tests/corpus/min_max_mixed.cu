// SPDX-License-Identifier: Apache-2.0
// min() and max() of mixed types: signed with unsigned, float with double.
// @BE run
__global__ void run(const float* x, float* y) {
  const int i = threadIdx.x;
  const unsigned most = max(i - 128, 7u);
  const long long least = min(-5ll, static_cast<long long>(i));
  y[i] = static_cast<float>(max(x[i], 0.25)) + min(x[i], 1.0f) + static_cast<float>(most % 97 + least);
}
