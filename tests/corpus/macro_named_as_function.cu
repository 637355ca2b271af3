// SPDX-License-Identifier: Apache-2.0
// A macro with the name of a function of the runtime.
#define min(a, b) ((a) + (b))
#define rsqrtf(v) ((v)*2)

// @BE run
__global__ void run(const float* x, float* y) { y[threadIdx.x] = min(x[threadIdx.x], rsqrtf(1.0f)); }
