// SPDX-License-Identifier: Apache-2.0
// 128-bit integers.
// @BE run
__global__ void run(const float* x, float* y) {
  const __int128 wide = static_cast<__int128>(threadIdx.x) * 0x100000000ll * 0x1000;
  y[threadIdx.x] = x[threadIdx.x] + static_cast<float>(static_cast<int>(wide >> 42));
}
