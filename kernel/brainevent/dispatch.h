// SPDX-License-Identifier: Apache-2.0
//
// Maps a runtime element type to a C++ type. The last argument is a block that is compiled once for each type of the
// family. In the block, SCALAR names that type:
//
//   BE_DISPATCH_FLOATING(x.dtype(), scalar_t, {
//     Scale(x.data_ptr<const scalar_t>(), y.data_ptr<scalar_t>(), x.numel());
//   });
//
// A dtype outside of the family fails like BE_CHECK. The block is the body of a lambda, so `return` leaves only the
// block.
#pragma once
#pragma GCC system_header  // no warnings here for those who include it

#include "brainevent/check.h"
#include "brainevent/dtypes.h"
#include "brainevent/internal/half.h"
#include "brainevent/tensor.h"

namespace BE {

struct complex64_t {
  float real;
  float imag;
};

struct complex128_t {
  double real;
  double imag;
};

}  // namespace BE

// One case of the switch, which is over an int: -Wswitch-enum would ask for all other types. KERNIX_CASES_<FAMILY>
// lists the cases of a family, KERNIX_TYPES_<FAMILY> names its types.
#define KERNIX_CASE(TAG, TYPE, SCALAR, ...)  \
  case static_cast<int>(::BE::DType::TAG): { \
    using SCALAR = TYPE;                     \
    __VA_ARGS__                              \
    break;                                   \
  }

#define KERNIX_TYPES_FLOATING "float32, float64"
#define KERNIX_CASES_FLOATING(SCALAR, ...)         \
  KERNIX_CASE(Float32, float, SCALAR, __VA_ARGS__) \
  KERNIX_CASE(Float64, double, SCALAR, __VA_ARGS__)

#define KERNIX_TYPES_HALF "float16, bfloat16"
#define KERNIX_CASES_HALF(SCALAR, ...)                       \
  KERNIX_CASE(Float16, ::BE::float16_t, SCALAR, __VA_ARGS__) \
  KERNIX_CASE(BFloat16, ::BE::bfloat16_t, SCALAR, __VA_ARGS__)

#define KERNIX_TYPES_INDEX "int32, int64"
#define KERNIX_CASES_INDEX(SCALAR, ...)            \
  KERNIX_CASE(Int32, int32_t, SCALAR, __VA_ARGS__) \
  KERNIX_CASE(Int64, int64_t, SCALAR, __VA_ARGS__)

#define KERNIX_TYPES_INTEGRAL "bool, int8 to int64, uint8 to uint64"
#define KERNIX_CASES_INTEGRAL(SCALAR, ...)           \
  KERNIX_CASES_INDEX(SCALAR, __VA_ARGS__)            \
  KERNIX_CASE(Bool, bool, SCALAR, __VA_ARGS__)       \
  KERNIX_CASE(Int8, int8_t, SCALAR, __VA_ARGS__)     \
  KERNIX_CASE(Int16, int16_t, SCALAR, __VA_ARGS__)   \
  KERNIX_CASE(UInt8, uint8_t, SCALAR, __VA_ARGS__)   \
  KERNIX_CASE(UInt16, uint16_t, SCALAR, __VA_ARGS__) \
  KERNIX_CASE(UInt32, uint32_t, SCALAR, __VA_ARGS__) \
  KERNIX_CASE(UInt64, uint64_t, SCALAR, __VA_ARGS__)

#define KERNIX_TYPES_COMPLEX "complex64, complex128"
#define KERNIX_CASES_COMPLEX(SCALAR, ...)                        \
  KERNIX_CASE(Complex64, ::BE::complex64_t, SCALAR, __VA_ARGS__) \
  KERNIX_CASE(Complex128, ::BE::complex128_t, SCALAR, __VA_ARGS__)

// TEXT is the user's text for DTYPE, TYPES the types that the macro takes.
#define KERNIX_DISPATCH(MACRO, TEXT, TYPES, DTYPE, ...)                                \
  [&] {                                                                                \
    switch (static_cast<int>(DTYPE)) {                                                 \
      __VA_ARGS__                                                                      \
      default:                                                                         \
        ::BE::internal::FailDispatch(__FILE__, __LINE__, MACRO, (DTYPE), TEXT, TYPES); \
    }                                                                                  \
  }()

namespace BE {
namespace internal {

[[noreturn]] KERNIX_HD KERNIX_COLD inline void FailDispatch(const char* file, int line, const char* macro, DType dtype,
                                                            const char* text, const char* types) {
  KERNIX_FAIL(CheckError, "check failed at %s:%d: %s: unsupported dtype %s: %s must be one of %s", file, line, macro,
              dtype_name(dtype), text, types);
}

}  // namespace internal
}  // namespace BE

// float32, float64.
#define BE_DISPATCH_FLOATING(DTYPE, SCALAR, ...)                                \
  KERNIX_DISPATCH("BE_DISPATCH_FLOATING", #DTYPE, KERNIX_TYPES_FLOATING, DTYPE, \
                  KERNIX_CASES_FLOATING(SCALAR, __VA_ARGS__))

// float16, bfloat16, float32, float64.
#define BE_DISPATCH_FLOATING_AND_HALF(DTYPE, SCALAR, ...)                                                       \
  KERNIX_DISPATCH("BE_DISPATCH_FLOATING_AND_HALF", #DTYPE, KERNIX_TYPES_HALF ", " KERNIX_TYPES_FLOATING, DTYPE, \
                  KERNIX_CASES_HALF(SCALAR, __VA_ARGS__) KERNIX_CASES_FLOATING(SCALAR, __VA_ARGS__))

// bool, and signed and unsigned integers of 8 to 64 bits.
#define BE_DISPATCH_INTEGRAL(DTYPE, SCALAR, ...)                                \
  KERNIX_DISPATCH("BE_DISPATCH_INTEGRAL", #DTYPE, KERNIX_TYPES_INTEGRAL, DTYPE, \
                  KERNIX_CASES_INTEGRAL(SCALAR, __VA_ARGS__))

// complex64, complex128.
#define BE_DISPATCH_COMPLEX(DTYPE, SCALAR, ...) \
  KERNIX_DISPATCH("BE_DISPATCH_COMPLEX", #DTYPE, KERNIX_TYPES_COMPLEX, DTYPE, KERNIX_CASES_COMPLEX(SCALAR, __VA_ARGS__))

// float32, float64, bool and integers.
#define BE_DISPATCH_ALL_TYPES(DTYPE, SCALAR, ...)                                                           \
  KERNIX_DISPATCH("BE_DISPATCH_ALL_TYPES", #DTYPE, KERNIX_TYPES_FLOATING ", " KERNIX_TYPES_INTEGRAL, DTYPE, \
                  KERNIX_CASES_FLOATING(SCALAR, __VA_ARGS__) KERNIX_CASES_INTEGRAL(SCALAR, __VA_ARGS__))

// Every element type.
#define BE_DISPATCH_ALL(DTYPE, SCALAR, ...)                                                                          \
  KERNIX_DISPATCH("BE_DISPATCH_ALL", #DTYPE,                                                                         \
                  KERNIX_TYPES_HALF ", " KERNIX_TYPES_FLOATING ", " KERNIX_TYPES_INTEGRAL ", " KERNIX_TYPES_COMPLEX, \
                  DTYPE,                                                                                             \
                  KERNIX_CASES_HALF(SCALAR, __VA_ARGS__) KERNIX_CASES_FLOATING(SCALAR, __VA_ARGS__)                  \
                      KERNIX_CASES_INTEGRAL(SCALAR, __VA_ARGS__) KERNIX_CASES_COMPLEX(SCALAR, __VA_ARGS__))

// int32, int64: index arrays of sparse formats.
#define BE_DISPATCH_SIGNED_INDEX(DTYPE, SCALAR, ...)                             \
  KERNIX_DISPATCH("BE_DISPATCH_SIGNED_INDEX", #DTYPE, KERNIX_TYPES_INDEX, DTYPE, \
                  KERNIX_CASES_INDEX(SCALAR, __VA_ARGS__))

// Two index types at once: the block is compiled for each of the four pairs.
#define BE_DISPATCH_SIGNED_INDEX_PAIR(DTYPE1, DTYPE2, SCALAR1, SCALAR2, ...) \
  BE_DISPATCH_SIGNED_INDEX(DTYPE1, SCALAR1, { BE_DISPATCH_SIGNED_INDEX(DTYPE2, SCALAR2, {__VA_ARGS__}); })

// The row pointers of a CSR matrix: int32 or int64. Its column indices must be int32 (see below).
#define BE_DISPATCH_CSR_INDPTR(DTYPE, SCALAR, ...) \
  KERNIX_DISPATCH("BE_DISPATCH_CSR_INDPTR", #DTYPE, KERNIX_TYPES_INDEX, DTYPE, KERNIX_CASES_INDEX(SCALAR, __VA_ARGS__))

#define BE_CHECK_CSR_INDICES_INT32(TENSOR)                                               \
  do {                                                                                   \
    BE_CHECK((TENSOR).dtype() == ::BE::DType::Int32)                                     \
        << "the column indices of a CSR matrix must be int32, not " << (TENSOR).dtype(); \
  } while (0)
