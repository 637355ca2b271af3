// SPDX-License-Identifier: Apache-2.0
//
// Helpers for sparse CUDA kernels, with the names that kernels written for BrainEvent use: sums over a warp, atomic
// additions, tests for an active input, conversions by element type, launch extents. The compiler finds this header
// only if no include path of the user has a header of this name.
#pragma once
#pragma GCC system_header  // no warnings here for those who include it

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

// --- Sums over a warp ------------------------------------------------------------------------------------------------
// All 32 lanes must call these functions together; lanes without a value pass 0. Lane 0 receives the sum; the results
// of the other lanes are undefined. Half types are summed as float.

__device__ inline float warp_reduce_sum_f32(float value) {
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_down_sync(0xffffffffu, value, distance);
  return value;
}

__device__ inline double warp_reduce_sum_f64(double value) {
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_down_sync(0xffffffffu, value, distance);
  return value;
}

// --- Active inputs ---------------------------------------------------------------------------------------------------
// Every value other than zero is active, including negative numbers and NaN.

#define IS_ACTIVE_BOOL(x) ((x) != 0)
#define IS_ACTIVE_F32(x) ((x) != 0.0f)
#define IS_ACTIVE_FLOAT(x) IS_ACTIVE_F32(x)
#define IS_ACTIVE_F64(x) ((x) != 0.0)
#define IS_ACTIVE_F16(x) (__half2float(x) != 0.0f)
#define IS_ACTIVE_BF16(x) (__bfloat162float(x) != 0.0f)

// --- From an element to a number and back ----------------------------------------------------------------------------

#define READ_F32(x) (x)
#define READ_F64(x) (x)
#define READ_F16(x) __half2float(x)
#define READ_BF16(x) __bfloat162float(x)

#define WRITE_F32(x) (x)
#define WRITE_F64(x) (x)
#define WRITE_F16(x) __float2half(x)
#define WRITE_BF16(x) __float2bfloat16(x)

#define ZERO_F32 0.0f
#define ZERO_F64 0.0
#define ZERO_F16 0.0f
#define ZERO_BF16 0.0f

// --- Launch extents --------------------------------------------------------------------------------------------------

// For kernels in which a warp processes a row: warps per block, and the maximum number of blocks. With the maximum, the
// kernel must advance by the size of the grid.
#define BE_WARP_PER_ROW_WPB 8
#define BE_WARP_PER_ROW_MAX_GRID 4096

// The number of blocks for `rows` rows; at least one, because a grid cannot be empty.
__host__ inline int be_warp_per_row_grid(int rows) {
  if (rows <= BE_WARP_PER_ROW_WPB) return 1;
  const int blocks = (rows - 1) / BE_WARP_PER_ROW_WPB + 1;
  return blocks < BE_WARP_PER_ROW_MAX_GRID ? blocks : BE_WARP_PER_ROW_MAX_GRID;
}

#define BE_WARP_PER_ROW_GRID(rows) be_warp_per_row_grid(rows)

// For matrix products in which the lanes of a warp are columns: rows per block, and the maximum number of blocks along
// x.
#define CSRMM_WARP_RPB 4
#define CSRMM_MAX_GRID_X 4096

// --- Atomic additions ------------------------------------------------------------------------------------------------

namespace kernix_cuda_common {

__device__ inline float ToFloat(__half x) { return __half2float(x); }
__device__ inline float ToFloat(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ inline void FromFloat(float x, __half& to) { to = __float2half(x); }
__device__ inline void FromFloat(float x, __nv_bfloat16& to) { to = __float2bfloat16(x); }

// For GPUs that cannot atomically add 16 bits: exchanges the aligned 32-bit word that contains them. Arrays must
// consist of whole words, because the neighbouring element is written, too.
template <typename Half>
__device__ inline void AddWithinWord(Half* address, float value) {
  const auto place = reinterpret_cast<uintptr_t>(address);
  auto* word = reinterpret_cast<unsigned*>(place & ~uintptr_t{3});
  const int shift = (place & 2) != 0 ? 16 : 0;
  unsigned seen = *word;
  unsigned expected;
  do {
    expected = seen;
    const auto old_bits = static_cast<unsigned short>(expected >> shift);
    Half sum;
    FromFloat(ToFloat(*reinterpret_cast<const Half*>(&old_bits)) + value, sum);
    const unsigned new_bits = *reinterpret_cast<const unsigned short*>(&sum);
    seen = atomicCAS(word, expected, (expected & ~(0xffffu << shift)) | (new_bits << shift));
  } while (seen != expected);
}

}  // namespace kernix_cuda_common

__device__ inline void atomic_add_f32(float* address, float value) { atomicAdd(address, value); }

__device__ inline void atomic_add_f64(double* address, double value) { atomicAdd(address, value); }

__device__ inline void atomic_add_f16(__half* address, float value) {
#if __CUDA_ARCH__ >= 700
  atomicAdd(address, __float2half(value));
#else
  kernix_cuda_common::AddWithinWord(address, value);
#endif
}

__device__ inline void atomic_add_bf16(__nv_bfloat16* address, float value) {
#if __CUDA_ARCH__ >= 800
  atomicAdd(address, __float2bfloat16(value));
#else
  kernix_cuda_common::AddWithinWord(address, value);
#endif
}
