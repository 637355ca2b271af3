// SPDX-License-Identifier: Apache-2.0
// Relocatable device code with a function that is not inlined.
// flags: -rdc=true
__device__ __noinline__ float Cube(float v) { return v * v * v; }

// @BE run
__global__ void run(const float* x, float* y) { y[threadIdx.x] = Cube(x[threadIdx.x]); }
