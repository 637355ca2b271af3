// SPDX-License-Identifier: Apache-2.0
//
// Array attributes, and what launch.h needs to read attributes of its own. The generated code includes this header only
// for functions that have one of these.
#pragma once
#pragma GCC system_header  // no warnings here for those who include it

#include "brainevent/internal/handler.h"
#include "brainevent/span.h"

namespace kernix_handler {

// The value that a function receives for an array attribute.
template <typename T>
inline BE::Span<const T> SpanOf(const AttributeValue& value) {
  return {static_cast<const T*>(value.block.data), value.block.size};
}

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
