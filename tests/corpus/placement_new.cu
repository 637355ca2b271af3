// SPDX-License-Identifier: Apache-2.0
// Placement new in device code.
#include <new>

struct Pair {
  __device__ Pair(float a, float b) : a(a), b(b) {}
  float a, b;
};

// @BE run
__global__ void run(const float* x, float* y) {
  alignas(Pair) unsigned char room[sizeof(Pair)];
  const Pair* pair = new (room) Pair(x[threadIdx.x], 2);
  y[threadIdx.x] = pair->a * pair->b;
}
