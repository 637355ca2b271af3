// SPDX-License-Identifier: Apache-2.0
// Headers of C that the runtime header includes as well.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// @BE run
__global__ void run(const float* x, float* y) {
  y[threadIdx.x] = sqrtf(fabsf(x[threadIdx.x])) + static_cast<float>(INT32_MAX > 0) + static_cast<float>(strlen("abc"));
}
