// SPDX-License-Identifier: Apache-2.0
//
// Attributes in general, and scalar attributes. The generated code includes this header only for functions with
// attributes.
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

}  // namespace kernix_handler
