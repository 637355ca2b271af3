# SPDX-License-Identifier: Apache-2.0
"""Exported __global__ functions: tests/gpu runs them, tests/python asks their handlers what needs no GPU."""

LAUNCHED = r"""
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include "brainevent/common.h"

// @BE vector_add
__global__ void vector_add(const float* a, const float* b, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a[i] + b[i];
}

template <typename T>
__global__ void __launch_bounds__(1024) scale(const T* __restrict__ x, T* __restrict__ y, double factor, size_t n) {
    size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i < n) y[i] = static_cast<T>(static_cast<float>(x[i]) * static_cast<float>(factor));
}
// @BE scale<__half>
// @BE scale<__nv_bfloat16>

// Reverses each block's part of an array through `shared` bytes of shared memory.
// @BE reverse
extern "C" __global__ void reverse(BE::In<int> x, BE::Out<int> y, bool negate, int64_t first) {
    extern __shared__ int part[];
    int64_t begin = int64_t{blockIdx.x} * blockDim.x;
    part[threadIdx.x] = x[begin + threadIdx.x];
    __syncthreads();
    int value = part[blockDim.x - 1 - threadIdx.x];
    y[begin + threadIdx.x] = (negate ? -value : value) + static_cast<int>(first);
}

// The place of each block: x, y and z of the grid, and the blocks of its cluster.
// @BE places
__global__ void places(int* y) {
    if (threadIdx.x + threadIdx.y + threadIdx.z > 0) return;
    int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    int* place = y + 4 * block;
    place[0] = blockIdx.x, place[1] = blockIdx.y, place[2] = blockIdx.z;
    place[3] = 1;
#if __CUDA_ARCH__ >= 900
    place[3] = cooperative_groups::this_cluster().num_blocks();
#endif
}
"""
