// SPDX-License-Identifier: Apache-2.0
// Built-in vectors without a function of the runtime.
// @BE run
__global__ void run(const float* x, float* y) {
  const float2 v = {x[threadIdx.x], x[255 - threadIdx.x]};
  uint3 index = threadIdx;
  const dim3 size(1, 2);
  y[index.x] = v.x * size.y - v.y * size.z + static_cast<float>(alignof(double2));
}
