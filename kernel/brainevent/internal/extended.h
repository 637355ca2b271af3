// SPDX-License-Identifier: Apache-2.0
//
// Handlers for functions with features beyond handler.h: optional and variadic arguments and results, tokens, the
// device ordinal, scratch memory. The generated code includes this header only for such functions, so other kernels do
// not pay for it.
#pragma once

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

// Storage for the tensors of a call.
class TensorRoom {
 public:
  explicit TensorRoom(int64_t count) : tensors_(count <= kInPlace ? in_place_ : new BE::Tensor[count]) {}
  TensorRoom(const TensorRoom&) = delete;
  TensorRoom& operator=(const TensorRoom&) = delete;
  ~TensorRoom() {
    if (tensors_ != in_place_) delete[] tensors_;
  }

  BE::Tensor* tensors() const { return tensors_; }

 private:
  static constexpr int kInPlace = 8;

  BE::Tensor in_place_[kInPlace];
  BE::Tensor* tensors_;
};

KERNIX_COLD inline ffi::Error* CheckCount(const ffi::CallFrame* frame, const Signature& signature, const char* what,
                                          const BufferRoles& roles, int64_t given) {
  const int fewest = roles.Fewest();
  const bool open = roles.rest < roles.count;
  if (given >= fewest && (open || given <= roles.count)) return nullptr;
  char most[32] = "";
  if (roles.optional > 0) __builtin_snprintf(most, sizeof(most), " to %d", roles.count);
  return Fail(frame, signature, ffi::kInvalidArgument, "expected %s%d%s %s%s, got %lld" KERNIX_TRACE_AGAIN,
              open ? "at least " : "", fewest, most, what, fewest == 1 && roles.optional == 0 ? "" : "s",
              static_cast<long long>(given));
}

KERNIX_COLD inline ffi::Error* CheckRole(const ffi::CallFrame* frame, const Signature& signature, const char* what,
                                         int64_t index, bool want_token, ffi::DataType type) {
  const bool is_token = type == ffi::kToken;
  if (is_token == want_token) return nullptr;
  return Fail(frame, signature, ffi::kInvalidArgument, "%s %lld must be %s, not %s", what,
              static_cast<long long>(index), want_token ? "a token" : "an array", is_token ? "a token" : "an array");
}

// Fills `list` from `buffers`, which must match `roles`.
KERNIX_COLD inline ffi::Error* ReadList(const ffi::CallFrame* frame, const Signature& signature, const char* what,
                                        const ffi::Buffers& buffers, const BufferRoles& roles, BE::Tensor* tensors,
                                        TensorList& list) {
  ffi::Error* error = CheckCount(frame, signature, what, roles, buffers.size);
  for (int64_t i = 0; error == nullptr && i < buffers.size; ++i) {
    const bool token = roles.At(i, buffers.size) == kToken;
    const ffi::DataType type =
        buffers.types[i] == ffi::kBuffer ? static_cast<const ffi::Buffer*>(buffers.buffers[i])->dtype : ffi::kInvalid;
    error = CheckRole(frame, signature, what, i, token, type);
    if (error == nullptr && !token)
      error = ReadBuffer(frame, signature, what, buffers, static_cast<int>(i), tensors[i]);
  }
  list = {tensors, buffers.size};
  return error;
}

// The error for `token`, which needs a function of XLA's API that the runtime does not have.
KERNIX_COLD inline ffi::Error* NotInThisRuntime(const ffi::CallFrame* frame, const Signature& signature,
                                                const char* token, const char* function) {
  return Fail(frame, signature, ffi::kUnimplemented,
              "'%s' needs %s of XLA's FFI, which this runtime does not have: use jaxlib 0.6.0 or newer", token,
              function);
}

KERNIX_COLD inline ffi::Error* ReadDeviceOrdinal(const ffi::CallFrame* frame, const Signature& signature,
                                                 int32_t& ordinal) {
  const ffi::Api& api = *frame->api;
  if (api.struct_size < offsetof(ffi::Api, device_ordinal_get) + sizeof(api.device_ordinal_get) ||
      api.device_ordinal_get == nullptr) {
    return NotInThisRuntime(frame, signature, "device_ordinal", "XLA_FFI_DeviceOrdinal_Get");
  }
  ffi::DeviceOrdinalGetArgs args = {sizeof(args), nullptr, frame->ctx, 0};
  ffi::Error* error = api.device_ordinal_get(&args);
  ordinal = args.device_ordinal;
  return error;
}

// Like Run() in handler.h. `function` may store an error in the call.
template <AttributeReader* kReader, StreamUse kStream, bool kDeviceOrdinal>
inline ffi::Error* RunExtended(const ffi::CallFrame* frame, const ExtendedSignature& signature,
                               AttributeValue* attributes, void (*function)(ExtendedCall&)) {
  if (AnswerMetadata(frame, signature)) return nullptr;
  if (frame->stage != ffi::kStageExecute) {
    return Fail(frame, signature, ffi::kInvalidArgument, "can only be called to execute");
  }
  const TensorRoom room(frame->args.size + frame->rets.size);
  ExtendedCall call = {frame, &signature, attributes};
  ffi::Error* error =
      ReadList(frame, signature, "argument", frame->args, signature.arguments, room.tensors(), call.arguments);
  if (error == nullptr) {
    error = ReadList(frame, signature, "result", frame->rets, signature.results, room.tensors() + frame->args.size,
                     call.results);
  }
  if constexpr (kReader != nullptr) {
    if (error == nullptr) error = ReadAttributes<kReader>(frame, signature, attributes);
  }
  if (error == nullptr && frame->attributes.size > signature.attribute_count)
    error = UnexpectedAttribute(frame, signature);
  if constexpr (kStream != kNoStream) {
    if (error == nullptr) error = ReadStream(frame, kStream, call.stream);
  }
  if constexpr (kDeviceOrdinal) {
    if (error == nullptr) error = ReadDeviceOrdinal(frame, signature, call.device_ordinal);
  }
  if (error == nullptr) error = Invoke(frame, signature, call, function);
  if (error == nullptr) return call.error;
  if (call.error != nullptr) {
    ffi::ErrorDestroyArgs destroy = {sizeof(destroy), nullptr, call.error};
    frame->api->error_destroy(&destroy);
  }
  return error;
}

}  // namespace kernix_handler
