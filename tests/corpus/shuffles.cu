// SPDX-License-Identifier: Apache-2.0
// Shuffles of a warp, of int, float, double and long long.
// @BE run
__global__ void run(const float* x, float* y) {
  float sum = x[threadIdx.x];
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xffffffff, sum, distance);
  const double up = __shfl_up_sync(0xffffffff, static_cast<double>(x[threadIdx.x]), 1);
  const long long down = __shfl_down_sync(0xffffffff, static_cast<long long>(threadIdx.x), 2);
  y[threadIdx.x] = sum + static_cast<float>(up) + static_cast<float>(down) + __shfl_sync(0xffffffff, 7, 3);
}
