// SPDX-License-Identifier: Apache-2.0
//
// String and array attributes. The generated code includes this header only for functions that have one.
#pragma once
#pragma GCC system_header  // no warnings here for those who include it

#include "brainevent/internal/scalars.h"
#include "brainevent/span.h"

namespace kernix_handler {

// An AttributeReader for all types.
KERNIX_RUNTIME bool ReadAnyAttribute(const AttributeSpec& spec, ffi::AttributeTag tag, const void* given,
                                     AttributeValue& value, Problem& problem);

// The value that a function receives for an array attribute.
template <typename T>
inline BE::Span<const T> SpanOf(const AttributeValue& value) {
  return {static_cast<const T*>(value.block.data), value.block.size};
}

}  // namespace kernix_handler
