// SPDX-License-Identifier: Apache-2.0
// assert() in device code.
#include <cassert>

// @BE run
__global__ void run(const float* x, float* y) {
  assert(blockDim.x == 256 && "one block");
  y[threadIdx.x] = x[threadIdx.x];
}
