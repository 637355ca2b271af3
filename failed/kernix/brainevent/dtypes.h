// SPDX-License-Identifier: Apache-2.0
//
// Element types of BE::Tensor.
#pragma once
#pragma GCC system_header  // no warnings here for those who include it

#include <cstddef>
#include <cstdint>

#include "brainevent/internal/macros.h"

namespace BE {

enum class DType : uint8_t {
  Float16 = 0,
  Float32 = 1,
  Float64 = 2,
  BFloat16 = 3,
  Int8 = 4,
  Int16 = 5,
  Int32 = 6,
  Int64 = 7,
  UInt8 = 8,
  UInt16 = 9,
  UInt32 = 10,
  UInt64 = 11,
  Bool = 12,
  Complex64 = 13,
  Complex128 = 14,
  // Types of one byte. "brainevent/float8.h" defines C++ types for them.
  Float8E4M3FN = 15,
  Float8E5M2 = 16,
  Float8E4M3 = 17,
  Float8E3M4 = 18,
  Float8E4M3B11FNUZ = 19,
  Float8E4M3FNUZ = 20,
  Float8E5M2FNUZ = 21,
  Float8E8M0FNU = 22,
  // Types of less than a byte, packed: the lowest bits of a byte hold its first element.
  Float4E2M1FN = 23,
  Int4 = 24,
  UInt4 = 25,
  Int2 = 26,
  UInt2 = 27,
  Int1 = 28,
  UInt1 = 29,
  Invalid = 255,
};

// The number of bits of one element; 0 for Invalid.
KERNIX_HD constexpr int dtype_bits(DType dtype) noexcept {
  constexpr uint8_t kBits[30] = {16, 32, 64, 16, 8, 16, 32, 64, 8, 16, 32, 64, 8, 64, 128,
                                 8,  8,  8,  8,  8, 8,  8,  8,  4, 4,  4,  2,  2, 1,  1};
  return static_cast<unsigned>(dtype) < 30 ? kBits[static_cast<unsigned>(dtype)] : 0;
}

// The number of bytes of one element; 0 for Invalid and for types of less than a byte.
KERNIX_HD constexpr size_t dtype_size(DType dtype) noexcept { return static_cast<size_t>(dtype_bits(dtype)) / 8; }

// The name that NumPy (with ml_dtypes) uses; "invalid" for Invalid.
KERNIX_HD constexpr const char* dtype_name(DType dtype) noexcept {
  switch (dtype) {
    case DType::Float16:
      return "float16";
    case DType::Float32:
      return "float32";
    case DType::Float64:
      return "float64";
    case DType::BFloat16:
      return "bfloat16";
    case DType::Int8:
      return "int8";
    case DType::Int16:
      return "int16";
    case DType::Int32:
      return "int32";
    case DType::Int64:
      return "int64";
    case DType::UInt8:
      return "uint8";
    case DType::UInt16:
      return "uint16";
    case DType::UInt32:
      return "uint32";
    case DType::UInt64:
      return "uint64";
    case DType::Bool:
      return "bool";
    case DType::Complex64:
      return "complex64";
    case DType::Complex128:
      return "complex128";
    case DType::Float8E4M3FN:
      return "float8_e4m3fn";
    case DType::Float8E5M2:
      return "float8_e5m2";
    case DType::Float8E4M3:
      return "float8_e4m3";
    case DType::Float8E3M4:
      return "float8_e3m4";
    case DType::Float8E4M3B11FNUZ:
      return "float8_e4m3b11fnuz";
    case DType::Float8E4M3FNUZ:
      return "float8_e4m3fnuz";
    case DType::Float8E5M2FNUZ:
      return "float8_e5m2fnuz";
    case DType::Float8E8M0FNU:
      return "float8_e8m0fnu";
    case DType::Float4E2M1FN:
      return "float4_e2m1fn";
    case DType::Int4:
      return "int4";
    case DType::UInt4:
      return "uint4";
    case DType::Int2:
      return "int2";
    case DType::UInt2:
      return "uint2";
    case DType::Int1:
      return "int1";
    case DType::UInt1:
      return "uint1";
    case DType::Invalid:
      break;
  }
  return "invalid";
}

namespace internal {

// `code` is an XLA_FFI_DataType. Returns Invalid for tokens, which have no elements, and for unknown codes.
KERNIX_HD constexpr DType DTypeFromXla(uint32_t code) noexcept {
  constexpr DType kTable[34] = {
      DType::Invalid,        DType::Bool,           DType::Int8,       DType::Int16,
      DType::Int32,          DType::Int64,          DType::UInt8,      DType::UInt16,
      DType::UInt32,         DType::UInt64,         DType::Float16,    DType::Float32,
      DType::Float64,        DType::Invalid,        DType::Invalid,    DType::Complex64,
      DType::BFloat16,       DType::Invalid,        DType::Complex128, DType::Float8E5M2,
      DType::Float8E4M3FN,   DType::Int4,           DType::UInt4,      DType::Float8E4M3B11FNUZ,
      DType::Float8E5M2FNUZ, DType::Float8E4M3FNUZ, DType::Int2,       DType::UInt2,
      DType::Float8E4M3,     DType::Float8E3M4,     DType::Int1,       DType::UInt1,
      DType::Float4E2M1FN,   DType::Float8E8M0FNU};
  return code < 34 ? kTable[code] : DType::Invalid;
}

}  // namespace internal

// The dtype of an xla::ffi::DataType or an XLA_FFI_DataType, for kernels that use XLA's own API.
template <typename XlaDataType>
constexpr DType xla_to_jkb_dtype(XlaDataType dtype) noexcept {
  return internal::DTypeFromXla(static_cast<uint32_t>(dtype));
}

}  // namespace BE
