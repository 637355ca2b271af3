// SPDX-License-Identifier: Apache-2.0
// Calls through pointers to device functions, and recursion.
__device__ float Plus(float a, float b) { return a + b; }
__device__ float Minus(float a, float b) { return a - b; }
__device__ int Depth(int n) { return n == 0 ? 0 : 1 + Depth(n / 2); }

// @BE run
__global__ void run(const float* x, float* y) {
  float (*const functions[2])(float, float) = {Plus, Minus};
  y[threadIdx.x] = functions[threadIdx.x % 2](x[threadIdx.x], static_cast<float>(Depth(threadIdx.x)));
}
