// SPDX-License-Identifier: Apache-2.0
// Loads and stores of built-in vectors, which their constructors make.
// @BE run
__global__ void run(const float* x, float* y) {
  if (threadIdx.x >= 64) return;
  const float4 v = reinterpret_cast<const float4*>(x)[threadIdx.x];
  reinterpret_cast<float4*>(y)[threadIdx.x] = make_float4(v.w, v.z, v.y, v.x);
}
