// SPDX-License-Identifier: Apache-2.0
//
// How the expressions of `scratch:` are computed: in whole numbers of 64 bits that notice when they overflow, since a
// size that has wrapped around would be memory that is too small. Included where a function has such an expression.
#pragma once

#include <stdint.h>

#include <type_traits>

namespace kernix_handler {

struct ScratchSize {
  int64_t bytes;
  bool failed;  // something overflowed, or was divided by 0
  const char* expression;
};

// A number of an expression. What fails gives 0, and sets `failed`.
struct Whole {
  int64_t value;
  bool* failed;

  static Whole Of(bool fails, int64_t value, bool* failed) {
    *failed |= fails;
    return {fails ? 0 : value, failed};
  }

  // `given`: a bool, an integer, or of an enum that converts to one.
  template <typename T>
  static Whole From(T given, bool* failed) {
    int64_t value = 0;
    const bool fails = __builtin_add_overflow(+given, 0, &value);
    return Of(fails, value, failed);
  }

  explicit operator bool() const { return value != 0; }

  // For `c ? 1.5 * n : n`. A template, since a double converts to everything else.
  template <typename T, std::enable_if_t<std::is_floating_point_v<T>, int> = 0>
  operator T() const {
    return static_cast<T>(value);
  }

  friend Whole operator+(Whole a) { return a; }
  friend Whole operator-(Whole a) { return Whole{0, a.failed} - a; }
  friend Whole operator~(Whole a) { return {~a.value, a.failed}; }
  friend bool operator!(Whole a) { return a.value == 0; }

  friend Whole operator+(Whole a, Whole b) {
    int64_t result = 0;
    const bool fails = __builtin_add_overflow(a.value, b.value, &result);
    return Of(fails, result, a.failed);
  }
  friend Whole operator-(Whole a, Whole b) {
    int64_t result = 0;
    const bool fails = __builtin_sub_overflow(a.value, b.value, &result);
    return Of(fails, result, a.failed);
  }
  friend Whole operator*(Whole a, Whole b) {
    int64_t result = 0;
    const bool fails = __builtin_mul_overflow(a.value, b.value, &result);
    return Of(fails, result, a.failed);
  }
  friend Whole operator/(Whole a, Whole b) {
    const bool fails = CannotDivide(a, b);
    return Of(fails, fails ? 0 : a.value / b.value, a.failed);
  }
  friend Whole operator%(Whole a, Whole b) {
    const bool fails = CannotDivide(a, b);
    return Of(fails, fails ? 0 : a.value % b.value, a.failed);
  }
  friend Whole operator<<(Whole a, Whole b) {
    const bool fails = b.value < 0 || b.value > 62;
    return a * Of(fails, int64_t{1} << (fails ? 0 : b.value), a.failed);
  }
  friend Whole operator>>(Whole a, Whole b) {
    const bool fails = b.value < 0 || b.value > 63;
    return Of(fails, a.value >> (fails ? 0 : b.value), a.failed);
  }
  friend Whole operator&(Whole a, Whole b) { return {a.value & b.value, a.failed}; }
  friend Whole operator|(Whole a, Whole b) { return {a.value | b.value, a.failed}; }
  friend Whole operator^(Whole a, Whole b) { return {a.value ^ b.value, a.failed}; }
  friend bool operator==(Whole a, Whole b) { return a.value == b.value; }
  friend bool operator!=(Whole a, Whole b) { return a.value != b.value; }
  friend bool operator<(Whole a, Whole b) { return a.value < b.value; }
  friend bool operator>(Whole a, Whole b) { return a.value > b.value; }
  friend bool operator<=(Whole a, Whole b) { return a.value <= b.value; }
  friend bool operator>=(Whole a, Whole b) { return a.value >= b.value; }

 private:
  static bool CannotDivide(Whole a, Whole b) { return b.value == 0 || (a.value == INT64_MIN && b.value == -1); }
};

template <typename T>
inline constexpr bool kIsWhole = std::is_integral_v<T> || (std::is_enum_v<T> && std::is_convertible_v<T, long long>);

template <typename T>
inline constexpr bool kIsNumber = kIsWhole<T> || std::is_floating_point_v<T>;

// With a number that is none of ours: what a comparison gives, what else a macro of the source holds, or a floating
// one, which makes the result floating as in C++.
#define KERNIX_MIXED(sign)                                                                 \
  template <typename T, std::enable_if_t<kIsNumber<T>, int> = 0>                           \
  auto operator sign(Whole a, T b) {                                                       \
    if constexpr (std::is_floating_point_v<T>) return static_cast<double>(a.value) sign b; \
    if constexpr (!std::is_floating_point_v<T>) return a sign Whole::From(b, a.failed);    \
  }                                                                                        \
  template <typename T, std::enable_if_t<kIsNumber<T>, int> = 0>                           \
  auto operator sign(T a, Whole b) {                                                       \
    if constexpr (std::is_floating_point_v<T>) return a sign static_cast<double>(b.value); \
    if constexpr (!std::is_floating_point_v<T>) return Whole::From(a, b.failed) sign b;    \
  }
KERNIX_MIXED(+)
KERNIX_MIXED(-)
KERNIX_MIXED(*)
KERNIX_MIXED(/)
KERNIX_MIXED(%)
KERNIX_MIXED(<<)
KERNIX_MIXED(>>)
KERNIX_MIXED(&)
KERNIX_MIXED(|)
KERNIX_MIXED(^)
KERNIX_MIXED(==)
KERNIX_MIXED(!=)
KERNIX_MIXED(<)
KERNIX_MIXED(>)
KERNIX_MIXED(<=)
KERNIX_MIXED(>=)
#undef KERNIX_MIXED

// A sign in front of the operand that follows.
template <char kSign>
struct Signed {
  bool* failed;

  template <typename T>
  auto operator->*(const T& operand) const {
    if constexpr (!kIsWhole<T>) {
      return Apply(operand);
    } else {
      return Apply(Whole::From(operand, failed));
    }
  }

 private:
  template <typename T>
  static auto Apply(const T& operand) {
    if constexpr (kSign == '!') return !operand;
    if constexpr (kSign == '~') return ~operand;
    if constexpr (kSign == '-') return -operand;
    if constexpr (kSign == '+') return +operand;
  }
};

// The evaluation of one expression, which has `->*` before each of its operands. That binds more tightly than anything
// between them, and needs no brackets: a macro of the source stays the text that it is.
class Arithmetic {
 public:
  // Whole numbers are computed with as such; everything else is what it was.
  template <typename T>
  decltype(auto) operator->*(T&& operand) {
    if constexpr (kIsWhole<std::remove_cv_t<std::remove_reference_t<T>>>) {
      return Whole::From(operand, &failed_);
    } else {
      return static_cast<T&&>(operand);
    }
  }

  friend Signed<'+'> operator+(Arithmetic& of) { return {&of.failed_}; }
  friend Signed<'-'> operator-(Arithmetic& of) { return {&of.failed_}; }
  friend Signed<'~'> operator~(Arithmetic& of) { return {&of.failed_}; }
  friend Signed<'!'> operator!(Arithmetic& of) { return {&of.failed_}; }

  // What a function, a cast or [] gets: C++'s own number of 64 bits, on which overloads and templates depend.
  template <typename T>
  decltype(auto) Pass(T&& argument) {
    using Type = std::remove_cv_t<std::remove_reference_t<T>>;
    if constexpr (std::is_same_v<Type, Whole>) {
      return int64_t{argument.value};
    } else if constexpr (std::is_integral_v<Type> && !std::is_same_v<Type, bool>) {
      return int64_t{Whole::From(argument, &failed_).value};
    } else {
      return static_cast<T&&>(argument);
    }
  }

  template <typename T>
  ScratchSize Size(const T& value, const char* expression) {
    int64_t bytes = 0;
    if constexpr (std::is_same_v<T, Whole>) {
      bytes = value.value;
    } else if constexpr (kIsWhole<T>) {
      bytes = Whole::From(value, &failed_).value;
    } else if constexpr (std::is_floating_point_v<T>) {
      const bool fits = value > -9223372036854775808.0 && value < 9223372036854775808.0;
      failed_ |= !fits;
      if (fits) bytes = static_cast<int64_t>(value);
    } else {
      bytes = static_cast<int64_t>(value);
    }
    return {bytes, failed_, expression};
  }

 private:
  bool failed_ = false;
};

}  // namespace kernix_handler
