// SPDX-License-Identifier: Apache-2.0
//
// Typed arguments and results of handlers: the conversion of a BE::Tensor to the parameter of the user's function. The
// generated code includes this header only for functions that have some.
#pragma once
#pragma GCC system_header  // no warnings here for those who include it

#include "brainevent/internal/handler.h"
#include "brainevent/typed.h"

// GCC gives this warning in system headers, too, when it inlines.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Waggregate-return"

namespace kernix_handler {

// The arrays that one argument or result may be.
struct ArrayType {
  const char* name;  // of the C++ parameter; may be empty
  BE::DType dtype;
  int rank;  // or BE::kAnyRank
  bool is_result;
  int64_t place;  // among the arguments or results of a call; from the end if negative: -1 is the last
};

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

// The array of a call as a BE::In or BE::Out, `View`. `function` and `parameter` are for errors. Compiled once for each
// `View`: inlined, it took half of the compile time of a unit with many functions.
template <typename View>
__attribute__((noinline)) View ViewOf(const BE::Tensor& tensor, [[maybe_unused]] const char* function,
                                      [[maybe_unused]] const char* parameter) {
  View view(tensor);
#if defined(KERNIX_CHECK_INDICES)
  view.SetName(function, parameter);
#endif
  return view;
}

// An argument that the handler has found right. It converts to a BE::In or a BE::Tensor, whichever the function
// takes.
template <BE::DType kDType, int kRank>
struct TypedArgument {
  BE::Tensor& tensor;
  const char* function;
  const char* parameter;

  operator BE::Tensor&() const { return tensor; }
  template <typename T, int kDeclared>
  operator BE::In<T, kDeclared>() const {
    CheckParameter<T, kDeclared, kDType, kRank>();
    return ViewOf<BE::In<T, kDeclared>>(tensor, function, parameter);
  }
};

// The same for a result and BE::Out.
template <BE::DType kDType, int kRank>
struct TypedResult {
  BE::Tensor& tensor;
  const char* function;
  const char* parameter;

  operator BE::Tensor&() const { return tensor; }
  template <typename T, int kDeclared>
  operator BE::Out<T, kDeclared>() const {
    CheckParameter<T, kDeclared, kDType, kRank>();
    return ViewOf<BE::Out<T, kDeclared>>(tensor, function, parameter);
  }
};

// A TypedArgument or TypedResult for a parameter whose element type kernix has not read (see attributes.h).
template <typename Typed, BE::DType kDType>
struct TypedValue {
  Typed typed;

  template <typename T>
  static constexpr bool kTakes = sizeof(typename T::value_type) == BE::dtype_size(kDType);
  template <typename T>
  T To() const {
    return typed;
  }
};

}  // namespace kernix_handler

#pragma GCC diagnostic pop
