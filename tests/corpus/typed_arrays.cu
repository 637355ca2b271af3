// SPDX-License-Identifier: Apache-2.0
// BE::In and BE::Out in device code.
#include "brainevent/common.h"

// @BE run
__global__ void run(BE::In<float, 1> x, BE::Out<float, 1> y) {
  for (int64_t i = threadIdx.x; i < y.size(); i += blockDim.x) y(i) = x(i) * x[x.size() - 1 - i];
}
