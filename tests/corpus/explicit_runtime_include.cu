// SPDX-License-Identifier: Apache-2.0
// Includes the runtime header itself, and its smaller parts.
#include <cuda_runtime.h>
#include <cuda_runtime_api.h>
#include <device_launch_parameters.h>
#include <vector_types.h>

// @BE run
__global__ void run(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }
