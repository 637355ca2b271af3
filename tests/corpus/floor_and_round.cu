// SPDX-License-Identifier: Apache-2.0
// Overloads of rounding functions, by C and by C++ names.
// @BE run
__global__ void run(const float* x, float* y) {
  const int i = threadIdx.x;
  y[i] = floor(x[i] * 3.5f) + static_cast<float>(lround(double(x[i]))) + rintf(x[i]) + trunc(x[i]) +
         static_cast<float>(__float2int_rn(x[i]));
}
