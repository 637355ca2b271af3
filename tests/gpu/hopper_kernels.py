# SPDX-License-Identifier: Apache-2.0
"""Kernels with what came with Hopper, and with kernels that launch kernels. tests/python compiles them, too."""

# y = a b for half a (64 x 16) and b (16 x 8), by one warpgroup. Only sm_90a has wgmma. In shared memory, both operands
# are core matrices of 8 rows of 16 bytes along k: two for each 8 rows of a, and of columns of b.
WGMMA = r"""
#include "brainevent/common.h"
#include <cuda_fp16.h>
__device__ uint64_t describe(const void* tile) {
    const uint64_t address = static_cast<uint64_t>(__cvta_generic_to_shared(tile)) >> 4;
    return (address & 0x3fff) | (uint64_t(128 >> 4) << 16) | (uint64_t(256 >> 4) << 32);
}
__global__ void multiply_kernel(const __half* a, const __half* b, float* y) {
    __shared__ alignas(128) __half a_tile[64 * 16], b_tile[8 * 16];
    const auto place = [](int row, int k) { return (row / 8 * 2 + k / 8) * 64 + row % 8 * 8 + k % 8; };
    for (int i = threadIdx.x; i < 64 * 16; i += 128) a_tile[place(i / 16, i % 16)] = a[i];
    if (threadIdx.x < 8 * 16) b_tile[place(threadIdx.x % 8, threadIdx.x / 8)] = b[threadIdx.x];
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    float d[4] = {};
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, 0, 1;\n"
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0; }\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "l"(describe(a_tile)), "l"(describe(b_tile)));
    asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
    const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
    for (int i = 0; i < 4; ++i) y[(row + i / 2 * 8) * 8 + column + i % 2] = d[i];
}
// @BE multiply
void multiply(BE::In<__half, 2> a, BE::In<__half, 2> b, BE::Out<float, 2> y, cudaStream_t stream) {
    multiply_kernel<<<1, 128, 0, stream>>>(a.data(), b.data(), y.data());
    BE_CHECK_KERNEL_LAUNCH();
}
"""

# Brings a tile into shared memory by TMA.
LOAD = r"""
#include "brainevent/common.h"
#include <cuda.h>
__device__ void load(const CUtensorMap& map, void* to, int row, int column, unsigned bytes) {
    __shared__ alignas(8) uint64_t barrier;
    const unsigned done = __cvta_generic_to_shared(&barrier);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(done));
        asm volatile("fence.proxy.async;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(done), "r"(bytes) : "memory");
        asm volatile(
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
            ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(&map), "r"(column), "r"(row), "r"(done)
            : "memory");
    }
    __syncthreads();
    asm volatile(
        "{ .reg .pred p;\n"
        "again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n"
        "@!p bra again; }" ::"r"(done)
        : "memory");
}
"""

# The tile of 8 x 8 of x whose corner is at (8, 16). The driver makes the descriptor.
TILE = (
    LOAD
    + r"""
__global__ void tile_kernel(const __grid_constant__ CUtensorMap map, float* y) {
    __shared__ alignas(128) float tile[64];
    load(map, tile, 8, 16, sizeof(tile));
    y[threadIdx.x] = tile[threadIdx.x];
}
// @BE tile
void tile(BE::In<float, 2> x, BE::Out<float, 2> y, cudaStream_t stream) {
    CUtensorMap map;
    const cuuint64_t sizes[] = {cuuint64_t(x.shape(1)), cuuint64_t(x.shape(0))}, strides[] = {sizes[0] * sizeof(float)};
    const cuuint32_t box[] = {8, 8}, every[] = {1, 1};
    const CUresult made = cuTensorMapEncodeTiled(
        &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, const_cast<float*>(x.data()), sizes, strides, box, every,
        CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    BE_CHECK(made == CUDA_SUCCESS) << "cuTensorMapEncodeTiled: error " << int(made);
    tile_kernel<<<1, 64, 0, stream>>>(map, y.data());
    BE_CHECK_KERNEL_LAUNCH();
}
"""
)

# Tiles by descriptors that kernix makes. `copy` moves 8 x 8 elements of x in and out; those outside of x are 0.
# `gather`, a host function, takes the first 8 rows of 32 by a box that swizzles.
MAPPED = (
    LOAD
    + r"""
constexpr int kSide = 8;
// @BE copy arg.tensormap:float32[kSide,kSide] ret.tensormap:float32[kSide,8] attr.row attr.column
__global__ void copy(const __grid_constant__ CUtensorMap x, const __grid_constant__ CUtensorMap y, int row,
                     int column) {
    __shared__ alignas(128) float tile[kSide * kSide];
    load(x, tile, row, column, sizeof(tile));
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];"
            ::"l"(&y), "r"(0), "r"(0), "r"((unsigned)__cvta_generic_to_shared(tile)) : "memory");
        asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
    }
}
__global__ void gather_kernel(const __grid_constant__ CUtensorMap map, float* y) {
    __shared__ alignas(1024) float tile[8 * 32];
    load(map, tile, 0, 0, sizeof(tile));
    // A row of the box is 128 bytes: of its 16-byte pieces, number i of row r lies at place i ^ r.
    for (int i = threadIdx.x; i < 8 * 32; i += blockDim.x) {
        const int row = i / 32, column = i % 32;
        y[i] = tile[row * 32 + (column / 4 ^ row) * 4 + column % 4];
    }
}
// @BE gather arg.tensormap:float32[8,32]:swizzle_128B ret:float32[2] stream
void gather(const CUtensorMap& map, BE::Out<float, 2> y, cudaStream_t stream) {
    gather_kernel<<<1, 64, 0, stream>>>(map, y.data());
    BE_CHECK_KERNEL_LAUNCH();
}
"""
)

# A kernel that launches a kernel: with -rdc=true.
LAUNCHES = """
#include <cuda_runtime.h>
#include "brainevent/common.h"
__global__ void child(float* y) { y[threadIdx.x] = threadIdx.x; }
__global__ void parent(float* y) { child<<<1, 32>>>(y); }
// @BE run
void run(BE::Out<float> y, cudaStream_t s) { parent<<<1, 1, 0, s>>>(y.data()); BE_CHECK_KERNEL_LAUNCH(); }
"""
