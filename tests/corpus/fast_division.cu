// SPDX-License-Identifier: Apache-2.0
// The same flag where no function is named.
// flags: --use_fast_math
// @BE run
__global__ void run(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x] / (3.7f + x[255 - threadIdx.x]); }
