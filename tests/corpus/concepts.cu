// SPDX-License-Identifier: Apache-2.0
// Concepts and templates with auto parameters.
// flags: -std=c++20
template <typename T>
concept Small = sizeof(T) <= 4;

__device__ float Twice(Small auto v) { return static_cast<float>(v + v); }
__device__ float Twice(auto v) { return static_cast<float>(v); }

// @BE run
__global__ void run(const float* x, float* y) { y[threadIdx.x] = Twice(x[threadIdx.x]) + Twice(1.0); }
