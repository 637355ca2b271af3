// SPDX-License-Identifier: Apache-2.0
//
// Attributes in general, scalar attributes, those whose declared type differs from that of the function's parameter,
// and those that a call may omit. The generated code includes this header only for functions with attributes.
#pragma once
#pragma GCC system_header  // no warnings here for those who include it

#include "brainevent/internal/handler.h"

namespace kernix_handler {

KERNIX_RUNTIME const char* TypeName(AttributeType type);

// The name that NumPy uses.
KERNIX_RUNTIME const char* XlaTypeName(ffi::DataType type);

// Stores the value of `scalar` as `type`. If it does not fit, describes why in `problem` and returns false.
KERNIX_RUNTIME bool ReadScalar(const ffi::Scalar& scalar, AttributeType type, AttributeValue& value, Problem& problem);

// An AttributeReader for functions that have only scalar attributes.
KERNIX_RUNTIME bool ReadScalarAttribute(const AttributeSpec& spec, ffi::AttributeTag tag, const void* given,
                                        AttributeValue& value, Problem& problem);

// --- Conversions: the type of the parameter may not be able to hold every value

// Converts `value`, of `spec.type`, to the parameter's type. Returns false if the result would be a different number.
// float64 is rounded to float32.
KERNIX_RUNTIME bool Convert(const AttributeSpec& spec, AttributeValue& value, Problem& problem);

// Reads a value with `kReader` and converts it to the parameter's type.
template <AttributeReader* kReader>
bool ReadConvertedAttribute(const AttributeSpec& spec, ffi::AttributeTag tag, const void* given, AttributeValue& value,
                            Problem& problem) {
  return kReader(spec, tag, given, value, problem) && (spec.parameter == kAsItIs || Convert(spec, value, problem));
}

// --- Default arguments of the parameters

inline bool IsGiven(const ffi::Attributes& given, const char* name) {
  for (int64_t i = 0; i < given.size; ++i) {
    const ffi::ByteSpan& other = *given.names[i];
    if (__builtin_strlen(name) == other.len && __builtin_memcmp(name, other.ptr, other.len) == 0) return true;
  }
  return false;
}

// Removes from `signature` the last attributes, which the call omits. The call must not omit any of the first
// `required` ones.
KERNIX_COLD inline ffi::Error* LeaveOut(const ffi::CallFrame* frame, int required, Signature& signature) {
  int given = signature.attribute_count;
  while (given > required && !IsGiven(frame->attributes, signature.attributes[given - 1].name)) --given;
  for (int i = required; i < given; ++i) {
    if (IsGiven(frame->attributes, signature.attributes[i].name)) continue;
    return Fail(
        frame, signature, ffi::kInvalidArgument,
        "attribute '%s' is given, so give '%s' before it, too: C++ can leave out default arguments only at the end",
        signature.attributes[given - 1].name, signature.attributes[i].name);
  }
  signature.attribute_count = given;
  return nullptr;
}

}  // namespace kernix_handler
