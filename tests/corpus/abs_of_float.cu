// SPDX-License-Identifier: Apache-2.0
// With <stdlib.h> alone, abs() of a float would be an integer.
// @BE run
__global__ void run(const float* x, float* y) { y[threadIdx.x] = abs(x[threadIdx.x] / 3); }
