// SPDX-License-Identifier: Apache-2.0
// Mathematical functions of double, in software.
// @BE run
__global__ void run(const float* x, float* y) {
  const double v = fabs(static_cast<double>(x[threadIdx.x])) + 0.5;
  y[threadIdx.x] = static_cast<float>(sin(v) * cos(v) + erf(v) + tgamma(v) + norm3d(v, 1, 2) + __dsqrt_rn(v));
}
