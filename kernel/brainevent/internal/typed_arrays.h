// SPDX-License-Identifier: Apache-2.0
//
// Typed arguments and results of handlers: the check of a call, and the conversion of a BE::Tensor to the parameter of
// the user's function. The generated code includes this header only for functions that have some.
#pragma once

#include "brainevent/internal/handler.h"
#include "brainevent/typed.h"

namespace kernix_handler {

// The arrays that one argument or result may be.
struct ArrayType {
  const char* name;  // of the C++ parameter; may be empty
  BE::DType dtype;
  int rank;  // or BE::kAnyRank
  bool is_result;
  int64_t place;  // among the arguments or results of a call; from the end if negative: -1 is the last
};

// "float32[2] (2 dimensions)"
KERNIX_COLD inline void DescribeType(const ArrayType& type, char (&text)[64]) {
  if (type.rank == BE::kAnyRank) {
    __builtin_snprintf(text, sizeof(text), "%s", BE::dtype_name(type.dtype));
  } else {
    __builtin_snprintf(text, sizeof(text), "%s[%d] (%d dimension%s)", BE::dtype_name(type.dtype), type.rank, type.rank,
                       type.rank == 1 ? "" : "s");
  }
}

// "float32[5,7]"; only the element type if `shape` is false.
KERNIX_COLD inline void DescribeBuffer(const ffi::Buffer& buffer, bool shape, char (&text)[256]) {
  int used =
      __builtin_snprintf(text, 64, "%s%s", BE::dtype_name(BE::internal::DTypeFromXla(buffer.dtype)), shape ? "[" : "");
  for (int64_t i = 0; shape && i < buffer.rank && i < BE::kMaxDim; ++i) {
    used += __builtin_snprintf(text + used, 24, "%s%lld", i == 0 ? "" : ",", static_cast<long long>(buffer.dims[i]));
  }
  if (shape) __builtin_snprintf(text + used, 8, buffer.rank > BE::kMaxDim ? ",...]" : "]");
}

KERNIX_COLD inline ffi::Error* WrongArray(const ffi::CallFrame* frame, const Signature& signature,
                                          const ArrayType& type, int64_t place, const ffi::Buffer& buffer) {
  char takes[64];
  char got[256];
  DescribeType(type, takes);
  DescribeBuffer(buffer, type.rank != BE::kAnyRank, got);
  const bool named = type.name[0] != '\0';
  return Fail(frame, signature, ffi::kInvalidArgument, "%s %lld%s%s%s takes %s, got %s" KERNIX_TRACE_AGAIN,
              type.is_result ? "result" : "argument", static_cast<long long>(place), named ? " (" : "", type.name,
              named ? ")" : "", takes, got);
}

// Checks the arrays of a call against `count` types. Run() checks what is missing or not an array.
KERNIX_COLD inline ffi::Error* CheckArrays(const ffi::CallFrame* frame, const Signature& signature,
                                           const ArrayType* types, int count) {
  const ffi::ExtensionBase* extension = frame->extension_start;
  if (extension != nullptr && extension->type == ffi::kExtensionMetadata) return nullptr;
  if (frame->stage != ffi::kStageExecute) return nullptr;
  for (int i = 0; i < count; ++i) {
    const ffi::Buffers& buffers = types[i].is_result ? frame->rets : frame->args;
    const int64_t place = types[i].place < 0 ? buffers.size + types[i].place : types[i].place;
    if (place < 0 || place >= buffers.size || buffers.types[place] != ffi::kBuffer) continue;
    const ffi::Buffer& buffer = *static_cast<const ffi::Buffer*>(buffers.buffers[place]);
    const BE::DType dtype = BE::internal::DTypeFromXla(buffer.dtype);
    if (dtype == BE::DType::Invalid) continue;
    if (dtype == types[i].dtype && (types[i].rank == BE::kAnyRank || types[i].rank == buffer.rank)) continue;
    return WrongArray(frame, signature, types[i], place, buffer);
  }
  return nullptr;
}

// The element type of arrays of T; Invalid for a T of another library, such as std::complex<float>.
template <typename T>
inline constexpr BE::DType kDTypeOf = BE::DType::Invalid;
template <>
inline constexpr BE::DType kDTypeOf<bool> = BE::DType::Bool;
template <>
inline constexpr BE::DType kDTypeOf<char> = BE::DType::Int8;
template <>
inline constexpr BE::DType kDTypeOf<signed char> = BE::DType::Int8;
template <>
inline constexpr BE::DType kDTypeOf<unsigned char> = BE::DType::UInt8;
template <>
inline constexpr BE::DType kDTypeOf<short> = BE::DType::Int16;
template <>
inline constexpr BE::DType kDTypeOf<unsigned short> = BE::DType::UInt16;
template <>
inline constexpr BE::DType kDTypeOf<int> = BE::DType::Int32;
template <>
inline constexpr BE::DType kDTypeOf<unsigned> = BE::DType::UInt32;
template <>
inline constexpr BE::DType kDTypeOf<long> = BE::DType::Int64;
template <>
inline constexpr BE::DType kDTypeOf<unsigned long> = BE::DType::UInt64;
template <>
inline constexpr BE::DType kDTypeOf<long long> = BE::DType::Int64;
template <>
inline constexpr BE::DType kDTypeOf<unsigned long long> = BE::DType::UInt64;
template <>
inline constexpr BE::DType kDTypeOf<float> = BE::DType::Float32;
template <>
inline constexpr BE::DType kDTypeOf<double> = BE::DType::Float64;

// Whether a parameter of T and kDeclared may take arrays of a token's type.
template <typename T, int kDeclared, BE::DType kDType, int kRank>
constexpr void CheckParameter() {
  static_assert(kDTypeOf<T> == BE::DType::Invalid ? sizeof(T) == BE::dtype_size(kDType) : kDTypeOf<T> == kDType,
                "the token in the arg_spec has another element type than this parameter of the function");
  static_assert(kDeclared == BE::kAnyRank || kDeclared == kRank,
                "the token in the arg_spec has another number of dimensions than this parameter of the function");
}

// An argument that CheckArrays() has found right. It converts to a BE::In or a BE::Tensor, whichever the function
// takes.
template <BE::DType kDType, int kRank>
struct TypedArgument {
  BE::Tensor& tensor;

  operator BE::Tensor&() const { return tensor; }
  template <typename T, int kDeclared>
  operator BE::In<T, kDeclared>() const {
    CheckParameter<T, kDeclared, kDType, kRank>();
    return BE::In<T, kDeclared>(tensor);
  }
};

// The same for a result and BE::Out.
template <BE::DType kDType, int kRank>
struct TypedResult {
  BE::Tensor& tensor;

  operator BE::Tensor&() const { return tensor; }
  template <typename T, int kDeclared>
  operator BE::Out<T, kDeclared>() const {
    CheckParameter<T, kDeclared, kDType, kRank>();
    return BE::Out<T, kDeclared>(tensor);
  }
};

}  // namespace kernix_handler
