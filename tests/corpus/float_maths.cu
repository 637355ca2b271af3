// SPDX-License-Identifier: Apache-2.0
// Mathematical functions of float, exact and fast ones.
// @BE run
__global__ void run(const float* x, float* y) {
  const float v = fabsf(x[threadIdx.x]) + 0.5f;
  y[threadIdx.x] = sqrtf(v) + expf(-v) + logf(v) + __expf(v) + __fdividef(v, 3.0f) + rsqrtf(v) + fmaf(v, v, 1.0f);
}
