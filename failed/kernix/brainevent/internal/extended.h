// SPDX-License-Identifier: Apache-2.0
//
// Handlers for functions with features beyond handler.h: optional and variadic arguments and results, tokens, the
// device ordinal, scratch memory. The generated code includes this header only for such functions, so other kernels do
// not pay for it.
#pragma once
#pragma GCC system_header  // no warnings here for those who include it

#include "brainevent/internal/handler.h"
#include "brainevent/span.h"

namespace kernix_handler {

// The role of one position in a function's argument or result list.
enum BufferRole : uint8_t {
  kTensor,
  kToken,  // an XLA token, which orders calls: it has no data, and the user's function does not see it
  kRest,   // any number of tensors: those that the other positions leave over. At most one per list
};

// A function's arguments or results, in its order. The last `optional` of them may be missing.
struct BufferRoles {
  const BufferRole* roles;
  int count;
  int optional;
  int rest;  // the index of kRest, or `count`

  int Fewest() const { return count - optional - (rest < count ? 1 : 0); }

  // The role of buffer `index` out of `given`.
  BufferRole At(int64_t index, int64_t given) const {
    if (index < rest) return roles[index];
    const int64_t places_after = count - rest - 1;
    return given - index > places_after ? kTensor : roles[count - (given - index)];
  }
};

struct ExtendedSignature : Signature {
  BufferRoles arguments;
  BufferRoles results;
};

// The tensors of a call's arguments or results. A token's position holds an empty tensor.
struct TensorList {
  BE::Tensor* tensors;
  int64_t count;

  BE::Tensor& FromStart(int64_t place) const { return tensors[place]; }
  BE::Tensor& FromEnd(int64_t place) const { return tensors[count - 1 - place]; }
  const BE::Tensor* Optional(int64_t place) const { return place < count ? &tensors[place] : nullptr; }

  // The tensors between the first `before` and the last `after`.
  template <typename Tensor>
  BE::Span<Tensor> Rest(int64_t before, int64_t after) const {
    return {tensors + before, static_cast<size_t>(count - before - after)};
  }
};

struct ExtendedCall {
  const ffi::CallFrame* frame;
  const Signature* signature;
  AttributeValue* attributes;
  TensorList arguments = {};
  TensorList results = {};
  Stream stream = {};
  int32_t device_ordinal = 0;
  ffi::Error* error = nullptr;  // set by code that cannot return an error
};

// The error for `token`, which needs a function of XLA's API that the runtime does not have.
KERNIX_RUNTIME ffi::Error* NotInThisRuntime(const ffi::CallFrame* frame, const Signature& signature, const char* token,
                                            const char* function);

// A complete handler, see RunExtended().
KERNIX_RUNTIME ffi::Error* RunExtendedHandler(const ffi::CallFrame* frame, const ExtendedSignature& signature,
                                              AttributeValue* attributes, void (*function)(ExtendedCall&),
                                              AttributeReader* reader, StreamUse stream, bool device_ordinal);

// Like Run() in handler.h. `function` may store an error in the call.
template <AttributeReader* kReader, StreamUse kStream, bool kDeviceOrdinal>
inline ffi::Error* RunExtended(const ffi::CallFrame* frame, const ExtendedSignature& signature,
                               AttributeValue* attributes, void (*function)(ExtendedCall&)) {
  return RunExtendedHandler(frame, signature, attributes, function, kReader, kStream, kDeviceOrdinal);
}

}  // namespace kernix_handler
