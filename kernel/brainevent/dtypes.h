// SPDX-License-Identifier: Apache-2.0
//
// Element types of BE::Tensor.
#pragma once

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
  Invalid = 255,
};

// Bytes of one element; 0 for Invalid.
KERNIX_HD constexpr size_t dtype_size(DType dtype) noexcept {
  switch (dtype) {
    case DType::Bool:
    case DType::Int8:
    case DType::UInt8:
      return 1;
    case DType::Float16:
    case DType::BFloat16:
    case DType::Int16:
    case DType::UInt16:
      return 2;
    case DType::Float32:
    case DType::Int32:
    case DType::UInt32:
      return 4;
    case DType::Float64:
    case DType::Int64:
    case DType::UInt64:
    case DType::Complex64:
      return 8;
    case DType::Complex128:
      return 16;
    case DType::Invalid:
      break;
  }
  return 0;
}

// As NumPy calls it; "invalid" for Invalid.
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
    case DType::Invalid:
      break;
  }
  return "invalid";
}

namespace internal {

// `code` is an XLA_FFI_DataType. Invalid for what BE::Tensor cannot hold (8 bits floats, 4 bit integers, tokens).
KERNIX_HD constexpr DType DTypeFromXla(uint32_t code) noexcept {
  constexpr DType kTable[19] = {DType::Invalid,   DType::Bool,     DType::Int8,    DType::Int16,     DType::Int32,
                                DType::Int64,     DType::UInt8,    DType::UInt16,  DType::UInt32,    DType::UInt64,
                                DType::Float16,   DType::Float32,  DType::Float64, DType::Invalid,   DType::Invalid,
                                DType::Complex64, DType::BFloat16, DType::Invalid, DType::Complex128};
  return code < 19 ? kTable[code] : DType::Invalid;
}

}  // namespace internal

// The dtype of an xla::ffi::DataType or an XLA_FFI_DataType, for kernels that speak XLA's own API.
template <typename XlaDataType>
constexpr DType xla_to_jkb_dtype(XlaDataType dtype) noexcept {
  return internal::DTypeFromXla(static_cast<uint32_t>(dtype));
}

}  // namespace BE
