// SPDX-License-Identifier: Apache-2.0
//
// The run time of a generated XLA FFI handler: from a call frame to the parameters of the user's function, and from
// exceptions to XLA errors. For the generated code only.
//
// A handler answers the metadata query, checks stage, arity, types and attributes against its Signature, and calls.
// Every failure becomes an XLA error that names the function and says what was expected.
//
// This is compiled with every kernel, and emitting code costs the compiler far more than reading it. So: failures are
// one call each and optimised for size, and what a function does not need (attributes, a stream) is not instantiated.
#pragma once

#include <stdarg.h>

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
  kBFloat16,  // likewise
  kFloat32,
  kFloat64,
  kString,
};

struct AttributeSpec {
  const char* name;
  AttributeType type;
  bool is_array = false;
};

// What a function without a stream gets for one: on the CPU there is none.
enum StreamUse : uint8_t { kNoStream, kNullableStream, kRequiredStream };

struct Signature {
  const char* name;
  int argument_count;
  int result_count;
  const AttributeSpec* attributes;
  int attribute_count;
  uint32_t traits;
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

// What is wrong with an attribute, in two parts.
struct Problem {
  const char* text;
  const char* detail = "";
};

// Becomes whatever the user's stream parameter is: an integer or a cudaStream_t.
struct Stream {
  void* handle;

  operator int64_t() const { return reinterpret_cast<intptr_t>(handle); }
  template <typename T>
  operator T*() const {
    return static_cast<T*>(handle);
  }
};

// The parameters of one call: arguments, then results, in `tensors`.
struct Call {
  BE::Tensor* tensors;
  AttributeValue* attributes;
  Stream stream;
};

// XLA's error for what went wrong in `signature`'s function; `format` is printf's.
KERNIX_COLD inline ffi::Error* Fail(const ffi::CallFrame* frame, const Signature& signature, ffi::ErrorCode code,
                                    const char* format, ...) {
  char message[768];
  const int start = __builtin_snprintf(message, 256, "%s: ", signature.name);
  const int used = start < 255 ? start : 255;
  va_list values;
  va_start(values, format);
  __builtin_vsnprintf(message + used, sizeof(message) - static_cast<size_t>(used), format, values);
  va_end(values);
  ffi::ErrorCreateArgs args = {sizeof(args), nullptr, message, code};
  return frame->api->error_create(&args);
}

// Makes `tensor` of the `i`th of `buffers`. `what` is "argument" or "result".
KERNIX_SMALL inline ffi::Error* ReadBuffer(const ffi::CallFrame* frame, const Signature& signature, const char* what,
                                           const ffi::Buffers& buffers, int i, BE::Tensor& tensor) {
  const ffi::Buffer* buffer = static_cast<const ffi::Buffer*>(buffers.buffers[i]);
  if (buffers.types[i] != ffi::kBuffer) {
    return Fail(frame, signature, ffi::kInvalidArgument, "%s %d is no array", what, i);
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

// Fills `tensors` from `buffers`, whose count must be `expected`.
KERNIX_COLD inline ffi::Error* ReadBuffers(const ffi::CallFrame* frame, const Signature& signature, const char* what,
                                           const ffi::Buffers& buffers, int expected, BE::Tensor* tensors) {
  if (buffers.size != expected) {
    return Fail(frame, signature, ffi::kInvalidArgument, "expected %d %s%s, got %lld", expected, what,
                expected == 1 ? "" : "s", static_cast<long long>(buffers.size));
  }
  for (int i = 0; i < expected; ++i) {
    ffi::Error* error = ReadBuffer(frame, signature, what, buffers, i, tensors[i]);
    if (error != nullptr) return error;
  }
  return nullptr;
}

inline const char* TypeName(AttributeType type) {
  static constexpr const char* kNames[] = {"bool",   "int8",   "int16",   "int32",    "int64",   "uint8",   "uint16",
                                           "uint32", "uint64", "float16", "bfloat16", "float32", "float64", "string"};
  return kNames[type];
}

// As NumPy calls it. A table, which costs a compiler less than dtype_name().
inline const char* XlaTypeName(ffi::DataType type) {
  static constexpr const char* kNames[] = {
      "nothing", "bool",    "int8",    "int16", "int32", "int64",     "uint8",    "uint16", "uint32",    "uint64",
      "float16", "float32", "float64", "",      "",      "complex64", "bfloat16", "token",  "complex128"};
  return kNames[type <= ffi::kC128 ? type : ffi::kInvalid];
}

// An integer (or bool) attribute from a scalar of any integer type that holds the same number.
KERNIX_COLD inline bool ReadInteger(const ffi::Scalar& scalar, AttributeType type, uint64_t& value) {
  const bool is_signed = scalar.dtype >= ffi::kS8 && scalar.dtype <= ffi::kS64;
  const unsigned size = scalar.dtype == ffi::kPred ? 1u : 1u << ((scalar.dtype - ffi::kS8) & 3u);
  uint64_t bits = 0;
  __builtin_memcpy(&bits, scalar.value, size);
  const unsigned unused = 64 - 8 * size;
  bits <<= unused;
  const bool negative = is_signed && (bits >> 63) != 0;
  value = is_signed ? static_cast<uint64_t>(static_cast<int64_t>(bits) >> unused) : bits >> unused;
  if (type == kBool) return value <= 1;
  const bool to_signed = type >= kInt8 && type <= kInt64;
  const unsigned width = 8u << ((type - kInt8) & 3u);
  if (negative) return to_signed && static_cast<int64_t>(value) >> (width - 1) == -1;
  return value >> (width - 1) >> (to_signed ? 0 : 1) == 0;
}

// A floating attribute from float32 or float64, or from an integer when nothing is lost. float64 rounds to float32.
KERNIX_COLD inline bool ReadReal(const ffi::Scalar& scalar, AttributeType type, double& value) {
  uint64_t integer = 0;
  float single = 0;
  if (scalar.dtype == ffi::kF64) {
    __builtin_memcpy(&value, scalar.value, sizeof(double));
  } else if (scalar.dtype == ffi::kF32) {
    __builtin_memcpy(&single, scalar.value, sizeof(float));
    value = single;
  } else {
    if (!ReadInteger(scalar, kInt64, integer)) return false;
    value = static_cast<double>(static_cast<int64_t>(integer));
    if (type == kFloat32) value = static_cast<float>(value);
    return value < 9223372036854775808.0 && static_cast<int64_t>(value) == static_cast<int64_t>(integer);
  }
  const bool is_finite = value - value == 0;
  return type == kFloat64 || !is_finite || __builtin_fabs(value) < 3.4028235677973366e38;  // FLT_MAX and half a unit
}

// An integer from a float32 or float64 that is a whole number. JAX makes no difference between 1 and 1.0: a call with
// one of them may come with what an earlier call had.
KERNIX_SMALL inline bool ReadWhole(const ffi::Scalar& scalar, AttributeType type, uint64_t& value, Problem& problem) {
  double real = 0;
  ReadReal(scalar, kFloat64, real);
  if (!(__builtin_fabs(real) < 9223372036854775808.0)) return false;
  int64_t whole = static_cast<int64_t>(real);
  if (static_cast<double>(whole) != real) problem = {"must be a whole number"};
  return static_cast<double>(whole) == real && ReadInteger({ffi::kS64, &whole}, type, value);
}

// Stores the value of `scalar` as `type`; false when it does not fit. What is wrong is in `problem` then.
KERNIX_SMALL inline bool ReadScalar(const ffi::Scalar& scalar, AttributeType type, AttributeValue& value,
                                    Problem& problem) {
  const bool integer = scalar.dtype >= ffi::kPred && scalar.dtype <= ffi::kU64;
  const bool real = scalar.dtype == ffi::kF32 || scalar.dtype == ffi::kF64;
  problem = {"is out of range"};
  if (type >= kFloat32 && (integer || real)) return ReadReal(scalar, type, value.real);
  if (type < kFloat16 && integer) return ReadInteger(scalar, type, value.integer);
  if (type < kFloat16 && real) return ReadWhole(scalar, type, value.integer, problem);
  const bool half = type == kFloat16 || type == kBFloat16;
  if (half && scalar.dtype == ffi::kU16) return ReadInteger(scalar, kUInt16, value.integer);
  problem = {half ? "must be passed as its bits, an np.uint16, not " : "cannot be made of ", XlaTypeName(scalar.dtype)};
  return false;
}

// Stores an attribute that XLA passes as `tag` and `given`.
using AttributeReader = bool(const AttributeSpec& spec, ffi::AttributeTag tag, const void* given, AttributeValue& value,
                             Problem& problem);

// For functions whose attributes are all scalars.
KERNIX_SMALL inline bool ReadScalarAttribute(const AttributeSpec& spec, ffi::AttributeTag tag, const void* given,
                                             AttributeValue& value, Problem& problem) {
  problem = {"must be a scalar"};
  return tag == ffi::kAttributeScalar && ReadScalar(*static_cast<const ffi::Scalar*>(given), spec.type, value, problem);
}

// XLA sorts attributes by name; there are few.
template <AttributeReader* kReader>
KERNIX_COLD inline ffi::Error* ReadAttributes(const ffi::CallFrame* frame, const Signature& signature,
                                              AttributeValue* values) {
  const ffi::Attributes& given = frame->attributes;
  for (int k = 0; k < signature.attribute_count; ++k) {
    const AttributeSpec& spec = signature.attributes[k];
    Problem problem = {"is missing"};
    bool read = false;
    for (int64_t i = 0; i < given.size; ++i) {
      const ffi::ByteSpan& name = *given.names[i];
      if (__builtin_strlen(spec.name) != name.len || __builtin_memcmp(spec.name, name.ptr, name.len) != 0) continue;
      read = kReader(spec, given.types[i], given.values[i], values[k], problem);
    }
    if (!read) {
      return Fail(frame, signature, ffi::kInvalidArgument, "attribute '%s' (%s%s) %s%s", spec.name, TypeName(spec.type),
                  spec.is_array ? "[]" : "", problem.text, problem.detail);
    }
  }
  return nullptr;
}

// Call ReadAttributes() before: of more attributes than the function has, one has a name that it does not know.
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
      return Fail(frame, signature, ffi::kInvalidArgument, "has no attribute '%.*s'", static_cast<int>(name.len),
                  name.ptr);
    }
  }
  return nullptr;
}

// The error of XLA, where there is no stream and the function cannot do without.
KERNIX_COLD inline ffi::Error* ReadStream(const ffi::CallFrame* frame, StreamUse use, Stream& stream) {
  ffi::StreamGetArgs args = {sizeof(args), nullptr, frame->ctx, nullptr};
  ffi::Error* error = frame->api->stream_get(&args);
  if (error == nullptr) stream.handle = args.stream;
  if (error == nullptr || use == kRequiredStream) return error;
  ffi::ErrorDestroyArgs destroy = {sizeof(destroy), nullptr, error};
  frame->api->error_destroy(&destroy);
  return nullptr;
}

// True when the frame was XLA's question what this handler is; it is answered then. `frame->api` may be null in such a
// frame.
inline bool AnswerMetadata(const ffi::CallFrame* frame, const Signature& signature) {
  ffi::ExtensionBase* extension = frame->extension_start;
  if (extension == nullptr || extension->type != ffi::kExtensionMetadata) return false;
  ffi::Metadata* metadata = reinterpret_cast<ffi::MetadataExtension*>(extension)->metadata;
  metadata->api_version.major_version = ffi::kApiMajor;
  metadata->api_version.minor_version = ffi::kApiMinor;
  metadata->traits = signature.traits;
  return true;
}

// Calls `function`. What it throws becomes an error.
template <typename Call>
inline ffi::Error* Invoke([[maybe_unused]] const ffi::CallFrame* frame, [[maybe_unused]] const Signature& signature,
                          Call& call, void (*function)(Call&)) {
#if KERNIX_HAS_EXCEPTIONS
  try {
    function(call);
  } catch (const std::exception& e) {
    return Fail(frame, signature, ffi::kInternal, "%s", e.what());
  } catch (...) {
    return Fail(frame, signature, ffi::kInternal, "the kernel threw something that is no std::exception");
  }
#else
  function(call);
#endif
  return nullptr;
}

// The whole of a handler. `call` has room for what `signature` says; `function` passes it on to the user's function.
// `kReader` is null for a function without attributes.
template <AttributeReader* kReader, StreamUse kStream>
inline ffi::Error* Run(const ffi::CallFrame* frame, const Signature& signature, Call& call, void (*function)(Call&)) {
  if (AnswerMetadata(frame, signature)) return nullptr;
  if (frame->stage != ffi::kStageExecute) {
    return Fail(frame, signature, ffi::kInvalidArgument, "can only be called to execute");
  }
  BE::Tensor* results = call.tensors + signature.argument_count;
  ffi::Error* error = ReadBuffers(frame, signature, "argument", frame->args, signature.argument_count, call.tensors);
  if (error == nullptr) error = ReadBuffers(frame, signature, "result", frame->rets, signature.result_count, results);
  if constexpr (kReader != nullptr) {
    if (error == nullptr) error = ReadAttributes<kReader>(frame, signature, call.attributes);
  }
  if (error == nullptr && frame->attributes.size > signature.attribute_count)
    error = UnexpectedAttribute(frame, signature);
  if constexpr (kStream != kNoStream) {
    if (error == nullptr) error = ReadStream(frame, kStream, call.stream);
  }
  return error != nullptr ? error : Invoke(frame, signature, call, function);
}

}  // namespace kernix_handler
