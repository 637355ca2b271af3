// SPDX-License-Identifier: Apache-2.0
// Questions about addresses, and hints for the compiler.
// @BE run
__global__ void run(const float* x, float* y) {
  __shared__ float value;
  if (threadIdx.x == 0) value = x[0];
  __syncthreads();
  __builtin_assume(blockDim.x == 256);
  const bool is_low = __cvta_generic_to_shared(&value) < 64;
  y[threadIdx.x] = value + __isShared(&value) + 2 * __isGlobal(x) + (is_low ? 4 : 8);
}
