// SPDX-License-Identifier: Apache-2.0
//
// Attributes whose declared type differs from the type of the function's parameter, which may not be able to hold every
// value. The generated code includes this header only for functions that have one.
#pragma once

#include "brainevent/internal/scalars.h"

namespace kernix_handler {

// Describes why `value` does not fit its parameter. The text is valid until the next call in this thread.
KERNIX_COLD inline const char* DoesNotFit(const AttributeSpec& spec, const AttributeValue& value) {
  static thread_local char text[128];
  char number[40];
  if (spec.type >= kFloat32) {
    __builtin_snprintf(number, sizeof(number), "%.*g", spec.type == kFloat32 ? 9 : 17, value.real);
  } else if (spec.type >= kInt8 && spec.type <= kInt64) {
    __builtin_snprintf(number, sizeof(number), "%lld", static_cast<long long>(value.integer));
  } else {
    __builtin_snprintf(number, sizeof(number), "%llu", static_cast<unsigned long long>(value.integer));
  }
  __builtin_snprintf(text, sizeof(text), "is %s, which does not fit the C++ parameter (%s)", number,
                     TypeName(spec.parameter));
  return text;
}

// Converts `value`, of `spec.type`, to the parameter's type. Returns false if the result would be a different number.
// float64 is rounded to float32.
KERNIX_COLD inline bool Convert(const AttributeSpec& spec, AttributeValue& value, Problem& problem) {
  const bool is_signed = spec.type >= kInt8 && spec.type <= kInt64;
  AttributeValue given = value;
  const ffi::Scalar scalar = {spec.type >= kFloat32 ? ffi::kF64 : is_signed ? ffi::kS64 : ffi::kU64, &given};
  if (ReadScalar(scalar, spec.parameter, value, problem)) return true;
  problem = {DoesNotFit(spec, given)};
  return false;
}

// Reads a value with `kReader` and converts it to the parameter's type.
template <AttributeReader* kReader>
bool ReadConvertedAttribute(const AttributeSpec& spec, ffi::AttributeTag tag, const void* given, AttributeValue& value,
                            Problem& problem) {
  return kReader(spec, tag, given, value, problem) && (spec.parameter == kAsItIs || Convert(spec, value, problem));
}

}  // namespace kernix_handler
