// SPDX-License-Identifier: Apache-2.0
//
// String and array attributes. The generated code includes this header only for functions that have one.
#pragma once

#include "brainevent/internal/scalars.h"
#include "brainevent/span.h"

namespace kernix_handler {

inline const char* TagName(ffi::AttributeTag tag) {
  static constexpr const char* kNames[] = {"something else", "an array", "a dictionary", "a scalar", "a string"};
  return tag <= ffi::kAttributeString ? kNames[tag] : kNames[0];
}

// The XLA data type of an array's elements.
inline ffi::DataType ElementType(AttributeType type) {
  static constexpr ffi::DataType kTypes[] = {ffi::kPred, ffi::kS8,  ffi::kS16, ffi::kS32, ffi::kS64,
                                             ffi::kU8,   ffi::kU16, ffi::kU32, ffi::kU64, ffi::kF16,
                                             ffi::kBF16, ffi::kF32, ffi::kF64};
  return kTypes[type];
}

inline bool ReadArray(const ffi::Array& array, AttributeType type, AttributeValue& value, Problem& problem) {
  value.block = {array.data, array.size};
  problem = {"is an array of ", XlaTypeName(array.dtype)};
  return array.dtype == ElementType(type);
}

// An AttributeReader for all types.
inline bool ReadAnyAttribute(const AttributeSpec& spec, ffi::AttributeTag tag, const void* given, AttributeValue& value,
                             Problem& problem) {
  problem = {spec.is_array ? "must be a NumPy array, not " : "must be a str, not ", TagName(tag)};
  if (spec.is_array) {
    return tag == ffi::kAttributeArray && ReadArray(*static_cast<const ffi::Array*>(given), spec.type, value, problem);
  }
  if (spec.type != kString) return ReadScalarAttribute(spec, tag, given, value, problem);
  if (tag != ffi::kAttributeString) return false;
  const ffi::ByteSpan& text = *static_cast<const ffi::ByteSpan*>(given);
  value.block = {text.ptr, text.len};
  return true;
}

// The value that a function receives for an array attribute.
template <typename T>
inline BE::Span<const T> SpanOf(const AttributeValue& value) {
  return {static_cast<const T*>(value.block.data), value.block.size};
}

}  // namespace kernix_handler
