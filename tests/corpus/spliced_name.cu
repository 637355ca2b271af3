// SPDX-License-Identifier: Apache-2.0
// A name that a backslash and a new line cut in two.
// @BE run
__global__ void run(const float* x, float* y) {
  y[threadIdx.x] = sqr\
tf(x[threadIdx.x] * x[threadIdx.x]);
}
