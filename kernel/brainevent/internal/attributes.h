// SPDX-License-Identifier: Apache-2.0
//
// Array attributes, values for parameters whose types kernix has not read, and what launch.h needs to read attributes
// of its own. The generated code includes this header only for functions that have one of these.
#pragma once
#pragma GCC system_header  // no warnings here for those who include it

#include "brainevent/internal/half.h"
#include "brainevent/internal/handler.h"
#include "brainevent/span.h"

// GCC gives this warning in system headers, too, when it inlines.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Waggregate-return"

namespace kernix_handler {

// The value that a function receives for an array attribute.
template <typename T>
inline BE::Span<const T> SpanOf(const AttributeValue& value) {
  return {static_cast<const T*>(value.block.data), value.block.size};
}

// Whether a parameter of type To takes a From.
template <typename To, typename From, typename = void>
inline constexpr bool kConverts = false;
template <typename To, typename From>
inline constexpr bool
    kConverts<To, From, decltype(static_cast<void (*)(To)>(nullptr)(static_cast<From (*)()>(nullptr)()))> = true;

// Values for parameters whose types kernix has not read. The generated code has a type around each, with a conversion
// to any parameter, To(). It is an error with a text of its own if the value does not take that parameter: kTakes.

// A number. Enums take it, too, if they can hold it.
template <typename Number>
struct NumberValue {
  const char* name;
  Number number;

  template <typename T>
  static constexpr bool kTakes = __is_enum(T) || kConverts<T, Number>;
  template <typename T>
  T To() const {
    if constexpr (__is_enum(T)) {
      using Held = __underlying_type(T);
      const Held held = static_cast<Held>(number);
      if (static_cast<Number>(held) != number || (held < Held()) != (number < Number())) DoesNotFit();
    }
    return static_cast<T>(number);
  }

 private:
  KERNIX_COLD void DoesNotFit() const {
    KERNIX_FAIL(BE::CheckError, "attribute '%s' is no value of the enum that the C++ parameter is", name);
  }
};

// Whether a parameter may be of type T for a half: a half, a float or a double, and a uint16_t, which gets the bits.
template <typename T>
constexpr bool TakesHalf() {
  if constexpr (!kConverts<T, float>) {
    return false;
  } else if constexpr (__is_class(T)) {
    return sizeof(T) == 2;
  } else {
    return sizeof(T) > 1 && static_cast<T>(0.5f) != static_cast<T>(0);
  }
}
template <>
constexpr bool TakesHalf<uint16_t>() {
  return true;
}

inline float FloatOfHalf(AttributeType type, uint64_t bits) {
  const auto half = static_cast<uint16_t>(bits);
  return type == kFloat16 ? BE::internal::FloatOfFloat16(half) : BE::internal::FloatOfBFloat16(half);
}

// A half, of `kType`.
template <AttributeType kType>
struct HalfValue {
  uint16_t bits;

  template <typename T>
  static constexpr bool kTakes = TakesHalf<T>();
  template <typename T>
  T To() const {
    return As(static_cast<T*>(nullptr));
  }

 private:
  uint16_t As(uint16_t*) const { return bits; }
  template <typename T>
  T As(T*) const {
    return static_cast<T>(FloatOfHalf(kType, bits));
  }
};

// A view holds the address of its elements, which bytes are not.
template <typename T, typename = void>
inline constexpr bool kIsView = false;
template <typename T>
inline constexpr bool kIsView<T, decltype(static_cast<void>(sizeof(typename T::element_type) + T::extent))> =
    true;  // std::span
template <typename T>
inline constexpr bool kIsView<BE::Span<T>> = true;

// Whether bytes can be the value of a T.
template <typename T>
inline constexpr bool kMadeOfBytes = (__is_class(T) || __is_union(T)) && !__is_polymorphic(T) && !kIsView<T>;

#define KERNIX_WRONG_SIZE                                                                                    \
  "attribute '%s' has %lld bytes; the C++ parameter has %lld (a NumPy dtype is laid out like a struct with " \
  "align=True)"

// An array: a BE::Span, or the bytes of a struct or a vector of CUDA.
template <typename Element>
struct ArrayValue {
  const char* name;
  BE::Span<const Element> array;

  // A half2 has copy constructors of its own; its bytes are its value all the same.
  template <typename T>
  static constexpr bool kTakes = kConverts<T, BE::Span<const Element>> ||
                                 (kMadeOfBytes<T> && __has_trivial_destructor(T));
  template <typename T>
  T To() const {
    if constexpr (kConverts<T, BE::Span<const Element>>) {
      return array;
    } else {
      if (array.size() * sizeof(Element) != sizeof(T)) WrongSize(sizeof(T));
      Storage<T> storage;
      __builtin_memcpy(&storage, array.data(), sizeof(T));
      return storage.value;
    }
  }

 private:
  template <typename T>
  union Storage {
    Storage() {}
    T value;
  };

  KERNIX_COLD void WrongSize(size_t right) const {
    KERNIX_FAIL(BE::CheckError, KERNIX_WRONG_SIZE, name, static_cast<long long>(array.size() * sizeof(Element)),
                static_cast<long long>(right));
  }
};

// Describes a problem with an attribute, in two parts.
struct Problem {
  const char* text;
  const char* detail = "";
};

// Stores the value of `scalar` as `type`. If it does not fit, describes why in `problem` and returns false.
KERNIX_RUNTIME bool ReadScalar(const ffi::Scalar& scalar, AttributeType type, AttributeValue& value, Problem& problem);

// The same for an attribute that XLA passes as `tag` and `given`.
KERNIX_RUNTIME bool ReadScalarAttribute(AttributeType type, ffi::AttributeTag tag, const void* given,
                                        AttributeValue& value, Problem& problem);

// The error for an attribute that the function does not have, if the call has one. Call it after reading the others.
KERNIX_RUNTIME ffi::Error* UnexpectedAttribute(const ffi::CallFrame* frame, const Signature& signature);

}  // namespace kernix_handler

#pragma GCC diagnostic pop
