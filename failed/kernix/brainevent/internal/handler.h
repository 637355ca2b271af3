// SPDX-License-Identifier: Apache-2.0
//
// The run-time part of a generated XLA FFI handler. It turns a call frame into the parameters of the user's function,
// and exceptions into XLA errors. Only generated code uses it.
//
// A handler answers the metadata query; checks stage, arity, types and attributes against its Signature; and calls the
// function. Every failure becomes an XLA error that names the function and says what was expected.
//
// Every kernel compiles this header, and generating code costs the compiler far more than parsing it. So functions that
// do not depend on the user's types are only declared here and in its neighbours. handler_runtime.h defines them;
// kernixd compiles that once for a compiler and its flags, and links it into each artifact.
#pragma once
#pragma GCC system_header  // no warnings here for those who include it

#include "brainevent/internal/ffi_abi.h"
#include "brainevent/tensor.h"

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
KERNIX_RUNTIME ffi::Error* Fail(const ffi::CallFrame* frame, const Signature& signature, ffi::ErrorCode code,
                                const char* format, ...);

// The end of errors for a call that does not fit the function: after replace=True, what JAX compiled before may not.
#define KERNIX_TRACE_AGAIN                                                                                         \
  ". If JAX traced the call before a load changed the function, call jax.clear_caches() and use the new module's " \
  "function"

// Makes `tensor` from element `i` of `buffers`. `what` is "argument" or "result".
KERNIX_RUNTIME ffi::Error* ReadBuffer(const ffi::CallFrame* frame, const Signature& signature, const char* what,
                                      const ffi::Buffers& buffers, int i, BE::Tensor& tensor);

// Stores an attribute that XLA passes as `tag` and `given`.
using AttributeReader = bool(const AttributeSpec& spec, ffi::AttributeTag tag, const void* given, AttributeValue& value,
                             Problem& problem);

// The error for an attribute that the function does not have, if the call has one. Call it after reading the others.
KERNIX_RUNTIME ffi::Error* UnexpectedAttribute(const ffi::CallFrame* frame, const Signature& signature);

// Reads the stream. Returns XLA's error if there is no stream and the function requires one.
KERNIX_RUNTIME ffi::Error* ReadStream(const ffi::CallFrame* frame, StreamUse use, Stream& stream);

// Returns true if XLA called the handler with its metadata query, which is answered then. In such a frame, `frame->api`
// may be null.
KERNIX_RUNTIME bool AnswerMetadata(const ffi::CallFrame* frame, const Signature& signature);

// Reads the arrays of a call, and the attributes that are the function's own. `reader` is null for a function without
// attributes.
KERNIX_RUNTIME ffi::Error* ReadParameters(const ffi::CallFrame* frame, const Signature& signature, Call& call,
                                          AttributeReader* reader);

// A complete handler, see Run().
KERNIX_RUNTIME ffi::Error* RunHandler(const ffi::CallFrame* frame, const Signature& signature, Call& call,
                                      void (*function)(Call&), AttributeReader* reader, StreamUse stream);

struct ArrayType;  // typed_arrays.h

// A handler as data, for a function that has arrays, attributes and a stream, each in every call.
struct Handler {
  Signature signature;  // without a module
  void (*function)(Call&);
  AttributeReader* reader;
  StreamUse stream;
  const ArrayType* types;
  int type_count;
};

// A complete handler. `module` may be null.
KERNIX_RUNTIME ffi::Error* RunTable(const ffi::CallFrame* frame, const char* module, const Handler& handler);

// A complete handler. `call` has room for the parameters of `signature`; `function` passes it on to the user's
// function. `kReader` is null for a function without attributes.
template <AttributeReader* kReader, StreamUse kStream>
inline ffi::Error* Run(const ffi::CallFrame* frame, const Signature& signature, Call& call, void (*function)(Call&)) {
  return RunHandler(frame, signature, call, function, kReader, kStream);
}

}  // namespace kernix_handler
