// SPDX-License-Identifier: Apache-2.0
// Complex numbers of CUDA.
#include <cuComplex.h>

// @BE run
__global__ void run(const float* x, float* y) {
  const cuComplex z = cuCmulf(make_cuComplex(x[threadIdx.x], 1), make_cuComplex(0, 2));
  y[threadIdx.x] = cuCabsf(z) + cuCrealf(z);
}
