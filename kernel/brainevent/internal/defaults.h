// SPDX-License-Identifier: Apache-2.0
//
// Attributes that a call may omit, because their parameters have default arguments. The generated code includes this
// header only for functions that have one.
#pragma once
#pragma GCC system_header  // no warnings here for those who include it

#include "brainevent/internal/scalars.h"

namespace kernix_handler {

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
