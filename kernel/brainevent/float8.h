// SPDX-License-Identifier: Apache-2.0
//
// C++ types for elements of eight bits, and dispatch over them. "brainevent/common.h" does not include this header,
// because every kernel would pay for it.
//
// The types convert from and to float as in JAX, on host and device: to the nearest value, ties to even. A value beyond
// the largest number becomes infinity or, in a type without infinity, NaN. CUDA's own types in cuda_fp8.h have the same
// bits (`data_ptr<__nv_fp8_e4m3>()`), but convert such a value to the largest number.
#pragma once
#pragma GCC system_header  // no warnings here for those who include it

#include "brainevent/dispatch.h"

namespace BE {
namespace internal {

// The meaning of the bit patterns that are not finite numbers.
enum class Float8Specials {
  kInfinities,  // as in IEEE 754: the largest exponent is infinity and NaN
  kNaN,         // all ones is NaN
  kOneNaN,      // minus zero is NaN
};

template <int kFractionBits, int kBias, Float8Specials kSpecials>
struct Float8 {
  uint8_t bits;

  Float8() = default;
  KERNIX_HD Float8(float value) : bits(FromFloat(BitsOfFloat(value))) {}
  template <typename Wide, typename IfWide<Wide>::Type = 0>
  KERNIX_HD Float8(Wide value) : Float8(FloatToRound(value)) {}
  KERNIX_HD static Float8 FromBits(uint8_t bits) {
    Float8 result;
    result.bits = bits;
    return result;
  }

  KERNIX_HD operator float() const {
    const uint32_t magnitude = bits & 0x7fu;
    const uint32_t sign = static_cast<uint32_t>(bits & 0x80u) << 24;
    if (IsNaN()) return FloatOfBits(sign | 0x7fc00000u);
    if (magnitude > kLargest) return FloatOfBits(sign | 0x7f800000u);
    if (magnitude >> kFractionBits != 0)
      return FloatOfBits(sign | ((magnitude << (23 - kFractionBits)) + ((127u - kBias) << 23)));
    const float subnormal = static_cast<float>(magnitude) * FloatOfBits((128u - kBias - kFractionBits) << 23);
    return FloatOfBits(sign | BitsOfFloat(subnormal));
  }

  KERNIX_HD Float8& operator+=(float other) { return *this = *this + other; }
  KERNIX_HD Float8& operator-=(float other) { return *this = *this - other; }
  KERNIX_HD Float8& operator*=(float other) { return *this = *this * other; }
  KERNIX_HD Float8& operator/=(float other) { return *this = *this / other; }

 private:
  static constexpr uint32_t kInfinity = 0x80u - (1u << kFractionBits);
  static constexpr uint32_t kLargest = kSpecials == Float8Specials::kInfinities ? kInfinity - 1
                                       : kSpecials == Float8Specials::kNaN      ? 0x7eu
                                                                                : 0x7fu;

  KERNIX_HD bool IsNaN() const {
    if (kSpecials == Float8Specials::kOneNaN) return bits == 0x80u;
    return (bits & 0x7fu) > (kSpecials == Float8Specials::kNaN ? 0x7eu : kInfinity);
  }

  KERNIX_HD static uint8_t NaN(uint32_t sign) {
    if (kSpecials == Float8Specials::kOneNaN) return 0x80u;
    const uint32_t quiet = kSpecials == Float8Specials::kNaN ? 0x7fu : kInfinity | (1u << (kFractionBits - 1));
    return static_cast<uint8_t>(sign | quiet);
  }

  KERNIX_HD static uint8_t FromFloat(uint32_t value) {
    const uint32_t sign = (value >> 24) & 0x80u;
    const uint32_t magnitude = value & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return NaN(sign);
    const uint32_t rounded = Rounded(magnitude);
    if (rounded > kLargest)
      return kSpecials == Float8Specials::kInfinities ? static_cast<uint8_t>(sign | kInfinity) : NaN(sign);
    if (rounded == 0 && kSpecials == Float8Specials::kOneNaN) return 0;
    return static_cast<uint8_t>(sign | rounded);
  }

  // The exponent and fraction of the rounded value of a float that is not NaN. Any number above kLargest means that the
  // value is too large.
  KERNIX_HD static uint32_t Rounded(uint32_t magnitude) {
    constexpr int kShift = 23 - kFractionBits;
    const int exponent = static_cast<int>(magnitude >> 23) - 127 + kBias;
    if (exponent > 0) return ShiftRounded(magnitude - ((127u - kBias) << 23), kShift);
    const int shift = kShift + 1 - exponent;
    return shift > 25 ? 0 : ShiftRounded((magnitude & 0x7fffffu) | 0x800000u, shift);
  }
};

}  // namespace internal

using float8_e5m2_t = internal::Float8<2, 15, internal::Float8Specials::kInfinities>;
using float8_e4m3_t = internal::Float8<3, 7, internal::Float8Specials::kInfinities>;
using float8_e3m4_t = internal::Float8<4, 3, internal::Float8Specials::kInfinities>;
using float8_e4m3fn_t = internal::Float8<3, 7, internal::Float8Specials::kNaN>;
using float8_e4m3b11fnuz_t = internal::Float8<3, 11, internal::Float8Specials::kOneNaN>;
using float8_e4m3fnuz_t = internal::Float8<3, 8, internal::Float8Specials::kOneNaN>;
using float8_e5m2fnuz_t = internal::Float8<2, 16, internal::Float8Specials::kOneNaN>;

// A power of two, 2^(bits - 127), or NaN if all bits are one: the scale of a block of smaller floats.
struct float8_e8m0fnu_t {
  uint8_t bits;

  KERNIX_HD operator float() const {
    if (bits == 0xffu) return internal::FloatOfBits(0x7fc00000u);
    return internal::FloatOfBits(bits == 0 ? 0x00400000u : static_cast<uint32_t>(bits) << 23);
  }
};

}  // namespace BE

#define KERNIX_TYPES_FLOAT8 "the eight-bit floats except float8_e8m0fnu"
#define KERNIX_CASES_FLOAT8(SCALAR, ...)                                          \
  KERNIX_CASE(Float8E4M3FN, ::BE::float8_e4m3fn_t, SCALAR, __VA_ARGS__)           \
  KERNIX_CASE(Float8E5M2, ::BE::float8_e5m2_t, SCALAR, __VA_ARGS__)               \
  KERNIX_CASE(Float8E4M3, ::BE::float8_e4m3_t, SCALAR, __VA_ARGS__)               \
  KERNIX_CASE(Float8E3M4, ::BE::float8_e3m4_t, SCALAR, __VA_ARGS__)               \
  KERNIX_CASE(Float8E4M3B11FNUZ, ::BE::float8_e4m3b11fnuz_t, SCALAR, __VA_ARGS__) \
  KERNIX_CASE(Float8E4M3FNUZ, ::BE::float8_e4m3fnuz_t, SCALAR, __VA_ARGS__)       \
  KERNIX_CASE(Float8E5M2FNUZ, ::BE::float8_e5m2fnuz_t, SCALAR, __VA_ARGS__)

// The eight-bit floats except float8_e8m0fnu, which is a scale and does not support arithmetic.
#define BE_DISPATCH_FLOAT8(DTYPE, SCALAR, ...) \
  KERNIX_DISPATCH("BE_DISPATCH_FLOAT8", #DTYPE, KERNIX_TYPES_FLOAT8, DTYPE, KERNIX_CASES_FLOAT8(SCALAR, __VA_ARGS__))

// All types with a C++ type, which excludes the types of less than a byte.
#define BE_DISPATCH_EVERYTHING(DTYPE, SCALAR, ...)                                                         \
  KERNIX_DISPATCH("BE_DISPATCH_EVERYTHING", #DTYPE, "all types that have one in C++", DTYPE,               \
                  KERNIX_CASES_HALF(SCALAR, __VA_ARGS__) KERNIX_CASES_FLOATING(SCALAR, __VA_ARGS__)        \
                      KERNIX_CASES_INTEGRAL(SCALAR, __VA_ARGS__) KERNIX_CASES_COMPLEX(SCALAR, __VA_ARGS__) \
                          KERNIX_CASES_FLOAT8(SCALAR, __VA_ARGS__)                                         \
                              KERNIX_CASE(Float8E8M0FNU, ::BE::float8_e8m0fnu_t, SCALAR, __VA_ARGS__))
