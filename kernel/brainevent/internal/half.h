// SPDX-License-Identifier: Apache-2.0
//
// BE::float16_t and BE::bfloat16_t.
//
// Under nvcc, they are CUDA's own types. cuda_fp16.h and cuda_bf16.h double the compile time of a small kernel, so the
// generated prologue requests them (KERNIX_USES_HALF) only if the sources need a half type. Without nvcc, the types are
// 16 bits of storage that convert from and to float, so all arithmetic is float arithmetic.
#pragma once
#pragma GCC system_header  // no warnings here for those who include it

#include <stdint.h>

#include <initializer_list>

#include "brainevent/internal/macros.h"

#if defined(__CUDACC__) && defined(KERNIX_USES_HALF)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

namespace BE {
namespace internal {

KERNIX_HD inline uint32_t BitsOfFloat(float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof(bits));
  return bits;
}

KERNIX_HD inline float FloatOfBits(uint32_t bits) {
  float value;
  __builtin_memcpy(&value, &bits, sizeof(value));
  return value;
}

// Selects constructors of short floats that take more bits than a float has.
template <typename T>
struct IfWide {};
template <>
struct IfWide<double> {
  using Type = int;
};
template <>
struct IfWide<long double> {
  using Type = int;
};

// The float that rounds to fewer bits as `value` does: of the two next to an inexact one, that whose last bit is 1.
template <typename Wide>
KERNIX_HD inline float FloatToRound(Wide value) {
  const float nearest = static_cast<float>(value);
  const uint32_t bits = BitsOfFloat(nearest);
  const Wide found = static_cast<Wide>(nearest);
  if (found == value || value != value || (bits & 1) != 0) return nearest;
  return FloatOfBits((value < 0 ? found > value : found < value) ? bits + 1 : bits - 1);
}

// `value` shifted right by `shift` (1 to 31), rounded to nearest, ties to even.
KERNIX_HD inline uint32_t ShiftRounded(uint32_t value, int shift) {
  const uint32_t half = 1u << (shift - 1);
  const uint32_t rest = value & ((half << 1) - 1);
  const uint32_t kept = value >> shift;
  return kept + (rest > half || (rest == half && (kept & 1)) ? 1 : 0);
}

// Converts to IEEE binary16, rounding to nearest even; values that are too large become infinity.
KERNIX_HD inline uint16_t Float16Bits(float value) {
  const uint32_t bits = BitsOfFloat(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x1ffu));
  if (magnitude >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude >= 0x38800000u) return static_cast<uint16_t>(sign | ShiftRounded(magnitude - 0x38000000u, 13));
  const int shift = 126 - static_cast<int>(magnitude >> 23);
  if (shift > 25) return static_cast<uint16_t>(sign);
  return static_cast<uint16_t>(sign | ShiftRounded((magnitude & 0x7fffffu) | 0x800000u, shift));
}

KERNIX_HD inline float FloatOfFloat16(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1fu;
  const uint32_t fraction = half & 0x3ffu;
  if (exponent == 0x1f) return FloatOfBits(sign | 0x7f800000u | (fraction << 13));
  if (exponent != 0) return FloatOfBits(sign | ((exponent + 112) << 23) | (fraction << 13));
  const float subnormal = static_cast<float>(fraction) * 5.9604644775390625e-08f;  // 2^-24
  return sign != 0 ? -subnormal : subnormal;
}

// The upper half of a float, rounded to nearest even.
KERNIX_HD inline uint16_t BFloat16Bits(float value) {
  const uint32_t bits = BitsOfFloat(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>(ShiftRounded(bits, 16));
}

KERNIX_HD inline float FloatOfBFloat16(uint16_t half) { return FloatOfBits(static_cast<uint32_t>(half) << 16); }

}  // namespace internal

#if !defined(__CUDACC__)

namespace internal {

// Braces take the bits, `Half{0x3c00}`; every other form takes a value, `Half(1)`, `Half x = 0.5f`.
template <uint16_t (*kToBits)(float), float (*kToFloat)(uint16_t)>
struct Half {
  uint16_t bits;

  Half() = default;
  Half(float value) : bits(kToBits(value)) {}
  template <typename Wide, typename IfWide<Wide>::Type = 0>
  Half(Wide value) : Half(FloatToRound(value)) {}
  Half(std::initializer_list<uint16_t> raw) : bits(raw.size() == 0 ? uint16_t{0} : *raw.begin()) {}

  operator float() const { return kToFloat(bits); }

  Half& operator+=(float other) { return *this = *this + other; }
  Half& operator-=(float other) { return *this = *this - other; }
  Half& operator*=(float other) { return *this = *this * other; }
  Half& operator/=(float other) { return *this = *this / other; }
};

}  // namespace internal

using float16_t = internal::Half<internal::Float16Bits, internal::FloatOfFloat16>;
using bfloat16_t = internal::Half<internal::BFloat16Bits, internal::FloatOfBFloat16>;

#elif defined(KERNIX_USES_HALF)

using float16_t = __half;
using bfloat16_t = __nv_bfloat16;

#endif

}  // namespace BE
