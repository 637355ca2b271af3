// SPDX-License-Identifier: Apache-2.0
// A name that only a macro of the text puts into code.
#define APPLY(f, v) f(v)
#define ROOT sqrtf

// @BE run
__global__ void run(const float* x, float* y) { y[threadIdx.x] = APPLY(ROOT, x[threadIdx.x] * x[threadIdx.x]); }
