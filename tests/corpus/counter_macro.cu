// SPDX-License-Identifier: Apache-2.0
// __COUNTER__ continues where the headers left it.
constexpr int kFirst = __COUNTER__;
constexpr int kSecond = __COUNTER__;

// @BE run
__global__ void run(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x] + (kSecond - kFirst); }
