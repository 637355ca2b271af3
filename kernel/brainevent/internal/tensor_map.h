// SPDX-License-Identifier: Apache-2.0
//
// Arrays that the user's function takes as a CUtensorMap, for TMA: `arg.tensormap` and `ret.tensormap`. The driver
// encodes the descriptor at each call. The generated code includes this header only for functions that have some.
#pragma once
#pragma GCC system_header  // no warnings here for those who include it

#include <cuda.h>

#include "brainevent/internal/launch.h"

namespace kernix_handler {

// An encoded descriptor, or why there is none. It converts to the parameter of the user's function.
struct TensorMap {
  CUtensorMap map = {};
  char problem[192] = "";

  KERNIX_HD operator CUtensorMap() const {
    if (problem[0] != '\0') KERNIX_FAIL(BE::CheckError, "%s", problem);
    return map;
  }
};

// CUDA's type with the size and the arithmetic of an element type, which a TMA reduction uses; -1 if there is none.
constexpr int TensorMapType(BE::DType dtype) {
  switch (dtype) {
    case BE::DType::Int32:
      return CU_TENSOR_MAP_DATA_TYPE_INT32;
    case BE::DType::UInt32:
      return CU_TENSOR_MAP_DATA_TYPE_UINT32;
    case BE::DType::Int64:
      return CU_TENSOR_MAP_DATA_TYPE_INT64;
    case BE::DType::UInt64:
      return CU_TENSOR_MAP_DATA_TYPE_UINT64;
    case BE::DType::Float16:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case BE::DType::BFloat16:
      return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case BE::DType::Float32:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    case BE::DType::Float64:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT64;
    default:  // of these, TMA only moves the bytes
      return BE::dtype_size(dtype) == 1                                ? CU_TENSOR_MAP_DATA_TYPE_UINT8
             : dtype == BE::DType::Int16 || dtype == BE::DType::UInt16 ? CU_TENSOR_MAP_DATA_TYPE_UINT16
                                                                       : -1;
  }
}

// Encodes the descriptor of `tensor`. `box` has the innermost dimension first, as the driver wants it; `name` is that
// of the parameter, for errors, and may be empty.
KERNIX_COLD inline void Encode(const BE::Tensor& tensor, const char* name, int type, const cuuint32_t* box,
                               CUtensorMapSwizzle swizzle, TensorMap& result) {
  const auto fail = [&](const char* problem, long long number) {
    const int length = __builtin_snprintf(result.problem, sizeof(result.problem),
                                          "the CUtensorMap%s%s: ", name[0] == '\0' ? "" : " ", name);
    __builtin_snprintf(result.problem + length, sizeof(result.problem) - static_cast<size_t>(length), problem, number);
  };
  constexpr int kMostDimensions = 5;
  constexpr int kAlignment = 16;
  cuuint64_t sizes[kMostDimensions];
  cuuint64_t strides[kMostDimensions];  // in bytes, and none for the innermost dimension
  const cuuint32_t every[kMostDimensions] = {1, 1, 1, 1, 1};
  const int rank = tensor.ndim();
  for (int i = 0; i < rank; ++i) {
    sizes[i] = static_cast<cuuint64_t>(tensor.shape(rank - 1 - i));
    strides[i] = (i == 0 ? tensor.element_size() : strides[i - 1]) * sizes[i];
  }
  if (tensor.numel() == 0) return fail("the array has no elements, which TMA cannot describe", 0);
  if (rank > 1 && strides[0] % kAlignment != 0) {
    return fail("a row of the array has %lld bytes; TMA needs a multiple of 16", static_cast<long long>(strides[0]));
  }
  if (reinterpret_cast<uintptr_t>(tensor.data()) % kAlignment != 0) {
    return fail("the array begins at an address that is no multiple of 16, which TMA needs; pass a copy", 0);
  }
  const CUresult made =
      cuTensorMapEncodeTiled(&result.map, static_cast<CUtensorMapDataType>(type), static_cast<cuuint32_t>(rank),
                             tensor.data(), sizes, strides, box, every, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                             CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (made == CUDA_ERROR_STUB_LIBRARY) return fail("the CUDA driver makes it, and there is none here", 0);
  if (made == CUDA_ERROR_NOT_FOUND) return fail("the CUDA driver is older than 12.0 and cannot make it", 0);
  if (made != CUDA_SUCCESS) fail("cuTensorMapEncodeTiled failed with error %lld", made);
}

// The descriptor of an array that the handler has found right. `kBox` is in the order of its shape. `kSwizzle` is 0,
// 32, 64 or 128 bytes.
template <BE::DType kDType, int kSwizzle, long long... kBox>
struct TensorMapOf : TensorMap {
  TensorMapOf(const BE::Tensor& tensor, const char*, const char* parameter) {
    constexpr int kRank = sizeof...(kBox);
    constexpr long long kInnermost = (kBox, ...);
    constexpr long long kBytes = kInnermost * static_cast<long long>(BE::dtype_size(kDType));
    static_assert(TensorMapType(kDType) >= 0, "TMA has no such element type");
    static_assert(((kBox >= 1 && kBox <= 256) && ...), "each size of a box for TMA must be 1 to 256");
    static_assert(kBytes % 16 == 0, "a row of a box for TMA must be a multiple of 16 bytes");
    static_assert(kSwizzle == 0 || kBytes <= kSwizzle, "a row of a box for TMA must fit into its swizzle");
    const cuuint32_t given[] = {static_cast<cuuint32_t>(kBox)...};
    cuuint32_t box[kRank];
    for (int i = 0; i < kRank; ++i) box[i] = given[kRank - 1 - i];
    constexpr CUtensorMapSwizzle kMode = kSwizzle == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
                                         : kSwizzle == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                         : kSwizzle == 32 ? CU_TENSOR_MAP_SWIZZLE_32B
                                                          : CU_TENSOR_MAP_SWIZZLE_NONE;
    Encode(tensor, parameter, TensorMapType(kDType), box, kMode, *this);
  }
};

// For a launch: reports why there is no descriptor, without an exception.
template <typename T, BE::DType kDType, int kSwizzle, long long... kBox>
KERNIX_COLD inline void CheckValue(Call& call, const TensorMapOf<kDType, kSwizzle, kBox...>& value) {
  if (value.problem[0] == '\0' || call.error != nullptr) return;
  call.error = Fail(call.frame, *call.signature, ffi::kInvalidArgument, "%s", value.problem);
}

}  // namespace kernix_handler
