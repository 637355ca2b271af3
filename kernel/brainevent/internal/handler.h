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

// The role of one position in a function's argument or result list.
enum BufferRole : uint8_t {
  kTensor,
  kToken,  // an XLA token, which orders calls: it has no data, and the user's function does not see it
  kRest,   // any number of tensors: those that the other positions leave over. At most one per list
};

// A function's arguments or results, in its order. The last `optional` of them may be missing.
struct BufferRoles {
  int count;
  const BufferRole* roles = nullptr;  // null: all are tensors
  int optional = 0;
  int rest = -1;  // the index of kRest, if there is one
};

struct Signature {
  const char* name;
  BufferRoles arguments;
  BufferRoles results;
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

// Converts to the type of the user's stream parameter: an integer or a cudaStream_t.
struct Stream {
  void* handle;

  operator int64_t() const { return reinterpret_cast<intptr_t>(handle); }
  template <typename T>
  operator T*() const {
    return static_cast<T*>(handle);
  }
};

// The tensors of a call's arguments or results. A token's position holds an empty tensor.
struct TensorList {
  BE::Tensor* tensors;
  int64_t count;

  BE::Tensor& FromEnd(int64_t place) const { return tensors[count - 1 - place]; }
  const BE::Tensor* Optional(int64_t place) const { return place < count ? &tensors[place] : nullptr; }

  // The tensors between the first `before` and the last `after`.
  template <typename Span>
  Span Rest(int64_t before, int64_t after) const {
    return {tensors + before, static_cast<size_t>(count - before - after)};
  }
};

// The parameters of one call.
struct Call {
  const ffi::CallFrame* frame;
  const Signature* signature;  // with the attributes that the call has
  AttributeValue* attributes;
  TensorList arguments = {};
  TensorList results = {};
  Stream stream = {};
  int32_t device_ordinal = 0;
  ffi::Error* error = nullptr;  // set by code that cannot return an error
};

// The XLA error for a failure in the function of `signature`; `format` is printf's.
KERNIX_RUNTIME ffi::Error* Fail(const ffi::CallFrame* frame, const Signature& signature, ffi::ErrorCode code,
                                const char* format, ...);

// The error for `token`, which needs a function of XLA's API that the runtime does not have.
KERNIX_RUNTIME ffi::Error* NotInThisRuntime(const ffi::CallFrame* frame, const Signature& signature, const char* token,
                                            const char* function);

struct ArrayType;  // typed_arrays.h

// A handler as data. To compile code would take far longer.
struct Handler {
  Signature signature;      // without a module
  void (*function)(Call&);  // passes the parameters on to the user's function
  StreamUse stream;
  const ArrayType* types;  // of typed arguments and results
  int type_count;
  int optional_attributes;  // how many of the last attributes a call may leave out
  bool takes_device_ordinal;
  bool launches;  // the function is of launch.h, which reads more attributes
};

// Does the work of a handler. `module` may be null.
KERNIX_RUNTIME ffi::Error* RunHandler(const ffi::CallFrame* frame, const char* module, const Handler& handler);

}  // namespace kernix_handler
