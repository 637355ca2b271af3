// SPDX-License-Identifier: Apache-2.0
//
// The run-time part of a generated XLA FFI handler. It turns a call frame into the parameters of the user's function,
// and exceptions into XLA errors. Only generated code uses it.
//
// A handler answers the metadata query; checks stage, arity, types and attributes against its Signature; and calls the
// function. Every failure becomes an XLA error that names the function and says what was expected.
//
// Every kernel compiles this header, and generating code costs the compiler far more than parsing it. So each failure
// is a single call, optimised for size, and features that a function does not use (attributes, a stream) are not
// instantiated.
#pragma once

#include <stdarg.h>

#include <typeinfo>

#include "brainevent/internal/ffi_abi.h"
#include "brainevent/tensor.h"

#if defined(__GXX_RTTI)
namespace __cxxabiv1 {
extern "C" char* __cxa_demangle(const char*, char*, size_t*, int*);  // as in <cxxabi.h>, which includes much more
}
#endif

namespace kernix_handler {

namespace ffi = kernix_ffi_abi;

enum AttributeType : uint8_t {
  kBool,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUInt8,
  kUInt16,
  kUInt32,
  kUInt64,
  kFloat16,   // as bits in a uint16_t
  kBFloat16,  // as bits in a uint16_t
  kFloat32,
  kFloat64,
  kString,
  kAsItIs,
};

struct AttributeSpec {
  const char* name;
  AttributeType type;
  bool is_array = false;
  AttributeType parameter = kAsItIs;  // the parameter's type, if a value might not fit it
};

// How a function receives the stream. On the CPU there is no stream.
enum StreamUse : uint8_t { kNoStream, kNullableStream, kRequiredStream };

struct Signature {
  const char* name;
  int argument_count;
  int result_count;
  const AttributeSpec* attributes;
  int attribute_count;
  uint32_t traits;
  const char* module = nullptr;  // the module's name for errors; null if the caller does not say it
};

// The bytes of a string, the elements of an array.
struct Block {
  const void* data;
  size_t size;
};

// A decoded attribute. Integers, bool and the bits of half types are in `integer`, modulo 2^64.
union AttributeValue {
  uint64_t integer;
  double real;
  Block block;
};

// Describes a problem with an attribute, in two parts.
struct Problem {
  const char* text;
  const char* detail = "";
};

// Converts to the type of the user's stream parameter: an integer or a cudaStream_t.
struct Stream {
  void* handle;

  operator int64_t() const { return reinterpret_cast<intptr_t>(handle); }
  template <typename T>
  operator T*() const {
    return static_cast<T*>(handle);
  }
};

// The parameters of one call. `tensors` holds the arguments, then the results.
struct Call {
  BE::Tensor* tensors;
  AttributeValue* attributes;
  Stream stream;
};

// The XLA error for a failure in the function of `signature`; `format` is printf's.
KERNIX_COLD inline ffi::Error* Fail(const ffi::CallFrame* frame, const Signature& signature, ffi::ErrorCode code,
                                    const char* format, ...) {
  char message[768];
  const bool named = signature.module != nullptr;
  const int start =
      __builtin_snprintf(message, 256, "%s%s%s: ", named ? signature.module : "", named ? "." : "", signature.name);
  const int used = start < 255 ? start : 255;
  va_list values;
  va_start(values, format);
  __builtin_vsnprintf(message + used, sizeof(message) - static_cast<size_t>(used), format, values);
  va_end(values);
  ffi::ErrorCreateArgs args = {sizeof(args), nullptr, message, code};
  return frame->api->error_create(&args);
}

// The end of errors for a call that does not fit the function: after replace=True, what JAX compiled before may not.
#define KERNIX_TRACE_AGAIN                                                                                         \
  ". If JAX traced the call before a load changed the function, call jax.clear_caches() and use the new module's " \
  "function"

// Makes `tensor` from element `i` of `buffers`. `what` is "argument" or "result".
KERNIX_SMALL inline ffi::Error* ReadBuffer(const ffi::CallFrame* frame, const Signature& signature, const char* what,
                                           const ffi::Buffers& buffers, int i, BE::Tensor& tensor) {
  const ffi::Buffer* buffer = static_cast<const ffi::Buffer*>(buffers.buffers[i]);
  if (buffers.types[i] != ffi::kBuffer) {
    return Fail(frame, signature, ffi::kInvalidArgument, "%s %d is not an array", what, i);
  }
  if (BE::internal::DTypeFromXla(buffer->dtype) == BE::DType::Invalid) {
    return Fail(frame, signature, ffi::kInvalidArgument,
                "%s %d has an element type that BE::Tensor cannot hold (XLA data type %d)", what, i,
                static_cast<int>(buffer->dtype));
  }
  if (buffer->rank < 0 || buffer->rank > BE::kMaxDim) {
    return Fail(frame, signature, ffi::kInvalidArgument, "%s %d has %lld dimensions; BE::Tensor holds at most %d", what,
                i, static_cast<long long>(buffer->rank), BE::kMaxDim);
  }
  tensor.Assign(buffer->data, buffer->dims, static_cast<int>(buffer->rank), BE::internal::DTypeFromXla(buffer->dtype));
  return nullptr;
}

// Fills `tensors` from `buffers`. Their number must be `expected`.
KERNIX_COLD inline ffi::Error* ReadBuffers(const ffi::CallFrame* frame, const Signature& signature, const char* what,
                                           const ffi::Buffers& buffers, int expected, BE::Tensor* tensors) {
  if (buffers.size != expected) {
    return Fail(frame, signature, ffi::kInvalidArgument, "expected %d %s%s, got %lld" KERNIX_TRACE_AGAIN, expected,
                what, expected == 1 ? "" : "s", static_cast<long long>(buffers.size));
  }
  for (int i = 0; i < expected; ++i) {
    ffi::Error* error = ReadBuffer(frame, signature, what, buffers, i, tensors[i]);
    if (error != nullptr) return error;
  }
  return nullptr;
}

// Stores an attribute that XLA passes as `tag` and `given`.
using AttributeReader = bool(const AttributeSpec& spec, ffi::AttributeTag tag, const void* given, AttributeValue& value,
                             Problem& problem);

// Fills `values` with the attributes of `signature`. Defined in scalars.h, which is included only for functions with
// attributes.
template <AttributeReader* kReader>
KERNIX_COLD ffi::Error* ReadAttributes(const ffi::CallFrame* frame, const Signature& signature, AttributeValue* values);

// Call ReadAttributes() first. If the call has more attributes than the function, one of their names is unknown.
KERNIX_COLD inline ffi::Error* UnexpectedAttribute(const ffi::CallFrame* frame, const Signature& signature) {
  const ffi::Attributes& given = frame->attributes;
  for (int64_t i = 0; i < given.size; ++i) {
    const ffi::ByteSpan& name = *given.names[i];
    bool known = false;
    for (int k = 0; k < signature.attribute_count; ++k) {
      const char* expected = signature.attributes[k].name;
      known |= __builtin_strlen(expected) == name.len && __builtin_memcmp(expected, name.ptr, name.len) == 0;
    }
    if (!known) {
      return Fail(frame, signature, ffi::kInvalidArgument, "has no attribute '%.*s'" KERNIX_TRACE_AGAIN,
                  static_cast<int>(name.len), name.ptr);
    }
  }
  return nullptr;
}

// Reads the stream. Returns XLA's error if there is no stream and the function requires one.
KERNIX_COLD inline ffi::Error* ReadStream(const ffi::CallFrame* frame, StreamUse use, Stream& stream) {
  ffi::StreamGetArgs args = {sizeof(args), nullptr, frame->ctx, nullptr};
  ffi::Error* error = frame->api->stream_get(&args);
  if (error == nullptr) stream.handle = args.stream;
  if (error == nullptr || use == kRequiredStream) return error;
  ffi::ErrorDestroyArgs destroy = {sizeof(destroy), nullptr, error};
  frame->api->error_destroy(&destroy);
  return nullptr;
}

// Returns true if XLA called the handler with its metadata query, which is answered then. In such a frame, `frame->api`
// may be null.
inline bool AnswerMetadata(const ffi::CallFrame* frame, const Signature& signature) {
  ffi::ExtensionBase* extension = frame->extension_start;
  if (extension == nullptr || extension->type != ffi::kExtensionMetadata) return false;
  ffi::Metadata* metadata = reinterpret_cast<ffi::MetadataExtension*>(extension)->metadata;
  metadata->api_version.major_version = ffi::kApiMajor;
  metadata->api_version.minor_version = ffi::kApiMinor;
  metadata->traits = signature.traits;
  return true;
}

#if KERNIX_HAS_EXCEPTIONS
// The error for an exception of the user's function. Those of BE_CHECK and the like say where they come from.
KERNIX_COLD inline ffi::Error* Thrown(const ffi::CallFrame* frame, const Signature& signature,
                                      const std::exception& exception) {
#if defined(__GXX_RTTI)
  const char* type = typeid(exception).name();
  if (__builtin_strncmp(type, "N2BE", 4) != 0) {
    char* readable = __cxxabiv1::__cxa_demangle(type, nullptr, nullptr, nullptr);
    ffi::Error* error =
        Fail(frame, signature, ffi::kInternal, "threw %s: %s", readable != nullptr ? readable : type, exception.what());
    __builtin_free(readable);
    return error;
  }
#endif
  return Fail(frame, signature, ffi::kInternal, "%s", exception.what());
}
#endif

// Calls `function` and turns its exceptions into errors.
template <typename Call>
inline ffi::Error* Invoke([[maybe_unused]] const ffi::CallFrame* frame, [[maybe_unused]] const Signature& signature,
                          Call& call, void (*function)(Call&)) {
#if KERNIX_HAS_EXCEPTIONS
  try {
    function(call);
  } catch (const std::exception& e) {
    return Thrown(frame, signature, e);
  } catch (...) {
    return Fail(frame, signature, ffi::kInternal, "threw something other than a std::exception");
  }
#else
  function(call);
#endif
  return nullptr;
}

// Reads the arrays of a call, and the attributes that are the function's own.
template <AttributeReader* kReader>
inline ffi::Error* ReadParameters(const ffi::CallFrame* frame, const Signature& signature, Call& call) {
  if (frame->stage != ffi::kStageExecute) {
    return Fail(frame, signature, ffi::kInvalidArgument, "can only be called to execute");
  }
  BE::Tensor* results = call.tensors + signature.argument_count;
  ffi::Error* error = ReadBuffers(frame, signature, "argument", frame->args, signature.argument_count, call.tensors);
  if (error == nullptr) error = ReadBuffers(frame, signature, "result", frame->rets, signature.result_count, results);
  if constexpr (kReader != nullptr) {
    if (error == nullptr) error = ReadAttributes<kReader>(frame, signature, call.attributes);
  }
  return error;
}

// A complete handler. `call` has room for the parameters of `signature`; `function` passes it on to the user's
// function. `kReader` is null for a function without attributes.
template <AttributeReader* kReader, StreamUse kStream>
inline ffi::Error* Run(const ffi::CallFrame* frame, const Signature& signature, Call& call, void (*function)(Call&)) {
  if (AnswerMetadata(frame, signature)) return nullptr;
  ffi::Error* error = ReadParameters<kReader>(frame, signature, call);
  if (error == nullptr && frame->attributes.size > signature.attribute_count)
    error = UnexpectedAttribute(frame, signature);
  if constexpr (kStream != kNoStream) {
    if (error == nullptr) error = ReadStream(frame, kStream, call.stream);
  }
  return error != nullptr ? error : Invoke(frame, signature, call, function);
}

}  // namespace kernix_handler
