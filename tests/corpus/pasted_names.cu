// SPDX-License-Identifier: Apache-2.0
// Function names that ## puts together.
#define FLOAT(name) name##f
#define JOIN(a, b) a##b

// @BE run
__global__ void run(const float* x, float* y) {
  const int i = threadIdx.x;
  y[i] = FLOAT(sqrt)(FLOAT(fabs)(x[i])) + JOIN(__int, 2float_rn)(i);
}
