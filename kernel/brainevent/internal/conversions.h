// SPDX-License-Identifier: Apache-2.0
//
// Attributes whose declared type differs from the type of the function's parameter, which may not be able to hold every
// value. The generated code includes this header only for functions that have one.
#pragma once
#pragma GCC system_header  // no warnings here for those who include it

#include "brainevent/internal/scalars.h"

namespace kernix_handler {

// Converts `value`, of `spec.type`, to the parameter's type. Returns false if the result would be a different number.
// float64 is rounded to float32.
KERNIX_RUNTIME bool Convert(const AttributeSpec& spec, AttributeValue& value, Problem& problem);

// Reads a value with `kReader` and converts it to the parameter's type.
template <AttributeReader* kReader>
bool ReadConvertedAttribute(const AttributeSpec& spec, ffi::AttributeTag tag, const void* given, AttributeValue& value,
                            Problem& problem) {
  return kReader(spec, tag, given, value, problem) && (spec.parameter == kAsItIs || Convert(spec, value, problem));
}

}  // namespace kernix_handler
