// SPDX-License-Identifier: Apache-2.0
//
// Defines what handler.h and its neighbours declare: the part of handlers that does not depend on the user's types.
// Only the unit that kernixd compiles for this (daemon/plan/host_compiler.cc), and tests, include this header.
#pragma once
#pragma GCC system_header  // no warnings here for those who include it

#include <stdarg.h>
#include <stddef.h>

#include <typeinfo>

#include "brainevent/internal/attributes.h"
#include "brainevent/internal/handler.h"
#include "brainevent/internal/typed_arrays.h"

#if defined(__GXX_RTTI)
namespace __cxxabiv1 {
extern "C" char* __cxa_demangle(const char*, char*, size_t*, int*);  // as in <cxxabi.h>, which includes much more
extern "C" std::type_info* __cxa_current_exception_type() noexcept;
}  // namespace __cxxabiv1
#endif

namespace kernix_handler {

// The end of errors for a call that does not fit the function: after replace=True, what JAX compiled before may not.
#define KERNIX_TRACE_AGAIN                                                                                         \
  ". If JAX traced the call before a load changed the function, call jax.clear_caches() and use the new module's " \
  "function"

// How many bytes the UTF-8 character at `text` has; 0 if no character is there.
KERNIX_COLD inline int CharacterSize(const unsigned char* text) {
  const unsigned char first = text[0];
  if (first < 0x80) return 1;
  const int size = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
  unsigned char least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;  // what is less would be too long a form
  unsigned char most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;   // what is more is no character
  for (int i = 1; i < size; ++i) {
    if (text[i] < least || text[i] > most) return 0;
    least = 0x80;
    most = 0xBF;
  }
  return size;
}

// Copies `text` with U+FFFD for each byte that is not UTF-8. `copy` has room for three times the size of `text`.
KERNIX_COLD inline void CopyAsUtf8(const char* text, char* copy) {
  while (*text != '\0') {
    const int size = CharacterSize(reinterpret_cast<const unsigned char*>(text));
    const int written = size > 0 ? size : 3;
    __builtin_memcpy(copy, size > 0 ? text : "\xEF\xBF\xBD", static_cast<size_t>(written));
    text += size > 0 ? size : 1;
    copy += written;
  }
  *copy = '\0';
}

// The XLA error for a failure in the function of `signature`; `format` is printf's. The message is made UTF-8: it may
// have an exception's text in any encoding, or end within a character, and Python would refuse it.
ffi::Error* Fail(const ffi::CallFrame* frame, const Signature& signature, ffi::ErrorCode code, const char* format,
                 ...) {
  char message[768];
  char utf8[3 * sizeof(message)];
  const bool named = signature.module != nullptr;
  const int start =
      __builtin_snprintf(message, 256, "%s%s%s: ", named ? signature.module : "", named ? "." : "", signature.name);
  const int used = start < 255 ? start : 255;
  va_list values;
  va_start(values, format);
  __builtin_vsnprintf(message + used, sizeof(message) - static_cast<size_t>(used), format, values);
  va_end(values);
  CopyAsUtf8(message, utf8);
  ffi::ErrorCreateArgs args = {sizeof(args), nullptr, utf8, code};
  return frame->api->error_create(&args);
}

// Makes `tensor` from element `i` of `buffers`. `what` is "argument" or "result".
KERNIX_COLD inline ffi::Error* ReadBuffer(const ffi::CallFrame* frame, const Signature& signature, const char* what,
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

KERNIX_COLD inline const char* TypeName(AttributeType type) {
  static constexpr const char* kNames[] = {"bool",   "int8",   "int16",   "int32",    "int64",   "uint8",   "uint16",
                                           "uint32", "uint64", "float16", "bfloat16", "float32", "float64", "string"};
  return kNames[type];
}

// Reads an integer (or bool) attribute from a scalar of any integer type that holds the same number.
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

// Reads a floating-point attribute from a float32 or float64, or from an integer if the conversion is exact. float64 is
// rounded to float32.
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

// Reads an integer from a float32 or float64 that is a whole number. JAX does not distinguish 1 from 1.0: a call with
// one of them may receive the value of an earlier call with the other.
KERNIX_SMALL inline bool ReadWhole(const ffi::Scalar& scalar, AttributeType type, uint64_t& value, Problem& problem) {
  double real = 0;
  ReadReal(scalar, kFloat64, real);
  if (!(__builtin_fabs(real) < 9223372036854775808.0)) return false;
  int64_t whole = static_cast<int64_t>(real);
  if (static_cast<double>(whole) != real) problem = {"must be a whole number"};
  return static_cast<double>(whole) == real && ReadInteger({ffi::kS64, &whole}, type, value);
}

// For messages.
KERNIX_COLD inline const char* NameOf(ffi::DataType type) {
  const BE::DType dtype = BE::internal::DTypeFromXla(type);
  return dtype == BE::DType::Invalid ? "a type that kernix does not know" : BE::dtype_name(dtype);
}

// Stores the value of `scalar` as `type`. If it does not fit, describes why in `problem` and returns false.
bool ReadScalar(const ffi::Scalar& scalar, AttributeType type, AttributeValue& value, Problem& problem) {
  const bool integer = scalar.dtype >= ffi::kPred && scalar.dtype <= ffi::kU64;
  const bool real = scalar.dtype == ffi::kF32 || scalar.dtype == ffi::kF64;
  problem = {"is out of range"};
  if (type >= kFloat32 && (integer || real)) return ReadReal(scalar, type, value.real);
  if (type < kFloat16 && integer) return ReadInteger(scalar, type, value.integer);
  if (type < kFloat16 && real) return ReadWhole(scalar, type, value.integer, problem);
  const bool half = type == kFloat16 || type == kBFloat16;
  if (half && scalar.dtype == ffi::kU16) return ReadInteger(scalar, kUInt16, value.integer);
  problem = {half ? "must be passed as its bits, an np.uint16, not " : "cannot be made of ", NameOf(scalar.dtype)};
  return false;
}

bool ReadScalarAttribute(AttributeType type, ffi::AttributeTag tag, const void* given, AttributeValue& value,
                         Problem& problem) {
  problem = {"must be a scalar"};
  return tag == ffi::kAttributeScalar && ReadScalar(*static_cast<const ffi::Scalar*>(given), type, value, problem);
}

inline const char* TagName(ffi::AttributeTag tag) {
  static constexpr const char* kNames[] = {"something else", "an array", "a dictionary", "a scalar", "a string"};
  return tag <= ffi::kAttributeString ? kNames[tag] : kNames[0];
}

// The XLA data type of an array's elements. Of halves, the bits come, as of a scalar.
inline ffi::DataType ElementType(AttributeType type) {
  static constexpr ffi::DataType kTypes[] = {ffi::kPred, ffi::kS8,  ffi::kS16, ffi::kS32, ffi::kS64,
                                             ffi::kU8,   ffi::kU16, ffi::kU32, ffi::kU64, ffi::kU16,
                                             ffi::kU16,  ffi::kF32, ffi::kF64};
  return kTypes[type];
}

inline bool ReadArray(const ffi::Array& array, AttributeType type, AttributeValue& value, Problem& problem) {
  value.block = {array.data, array.size};
  problem = {"is an array of ", NameOf(array.dtype)};
  return array.dtype == ElementType(type);
}

// Describes why `value` does not fit its parameter. The text is valid until the next call in this thread.
KERNIX_COLD inline const char* DoesNotFit(const AttributeSpec& spec, const AttributeValue& value) {
  static thread_local char text[128];
  char number[40];
  if (spec.type >= kFloat32) {
    __builtin_snprintf(number, sizeof(number), "%.*g", spec.type == kFloat32 ? 9 : 17, value.real);
  } else if (spec.type >= kInt8 && spec.type <= kInt64) {
    __builtin_snprintf(number, sizeof(number), "%lld", static_cast<long long>(value.integer));
  } else {
    __builtin_snprintf(number, sizeof(number), "%llu", static_cast<unsigned long long>(value.integer));
  }
  __builtin_snprintf(text, sizeof(text), "is %s, which does not fit the C++ parameter (%s)", number,
                     TypeName(spec.parameter));
  return text;
}

// Converts `value`, of `spec.type`, to the parameter's type. Returns false if the result would be a different number.
// float64 is rounded to float32. A half becomes a float or a double.
KERNIX_COLD inline bool Convert(const AttributeSpec& spec, AttributeValue& value, Problem& problem) {
  if (spec.type == kFloat16 || spec.type == kBFloat16) {
    value.real = FloatOfHalf(spec.type, value.integer);
    return true;
  }
  const bool is_signed = spec.type >= kInt8 && spec.type <= kInt64;
  AttributeValue given = value;
  const ffi::Scalar scalar = {spec.type >= kFloat32 ? ffi::kF64 : is_signed ? ffi::kS64 : ffi::kU64, &given};
  if (ReadScalar(scalar, spec.parameter, value, problem)) return true;
  problem = {DoesNotFit(spec, given)};
  return false;
}

// Stores an attribute that XLA passes as `tag` and `given`.
KERNIX_COLD inline bool ReadAttribute(const AttributeSpec& spec, ffi::AttributeTag tag, const void* given,
                                      AttributeValue& value, Problem& problem) {
  problem = {spec.is_array ? "must be a NumPy array, not " : "must be a str, not ", TagName(tag)};
  if (spec.is_array) {
    return tag == ffi::kAttributeArray && ReadArray(*static_cast<const ffi::Array*>(given), spec.type, value, problem);
  }
  if (spec.type != kString) {
    return ReadScalarAttribute(spec.type, tag, given, value, problem) &&
           (spec.parameter == kAsItIs || Convert(spec, value, problem));
  }
  if (tag != ffi::kAttributeString) return false;
  const ffi::ByteSpan& text = *static_cast<const ffi::ByteSpan*>(given);
  value.block = {text.ptr, text.len};
  return true;
}

// Fills `values` with the attributes of `signature`. XLA sorts attributes by name, and there are few of them.
KERNIX_COLD inline ffi::Error* ReadAttributes(const ffi::CallFrame* frame, const Signature& signature,
                                              AttributeValue* values) {
  const ffi::Attributes& given = frame->attributes;
  for (int k = 0; k < signature.attribute_count; ++k) {
    const AttributeSpec& spec = signature.attributes[k];
    Problem problem = {"is missing" KERNIX_TRACE_AGAIN};
    bool read = false;
    for (int64_t i = 0; i < given.size; ++i) {
      const ffi::ByteSpan& name = *given.names[i];
      if (__builtin_strlen(spec.name) != name.len || __builtin_memcmp(spec.name, name.ptr, name.len) != 0) continue;
      read = ReadAttribute(spec, given.types[i], given.values[i], values[k], problem);
    }
    if (!read) {
      return Fail(frame, signature, ffi::kInvalidArgument, "attribute '%s' (%s%s) %s%s", spec.name, TypeName(spec.type),
                  spec.is_array ? "[]" : "", problem.text, problem.detail);
    }
  }
  return nullptr;
}

// Call ReadAttributes() first. If the call has more attributes than the function, one of their names is unknown.
ffi::Error* UnexpectedAttribute(const ffi::CallFrame* frame, const Signature& signature) {
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

// "float32[2] (2 dimensions)"
KERNIX_COLD inline void DescribeType(const ArrayType& type, char (&text)[64]) {
  if (type.rank == BE::kAnyRank) {
    __builtin_snprintf(text, sizeof(text), "%s", BE::dtype_name(type.dtype));
  } else {
    __builtin_snprintf(text, sizeof(text), "%s[%d] (%d dimension%s)", BE::dtype_name(type.dtype), type.rank, type.rank,
                       type.rank == 1 ? "" : "s");
  }
}

// "float32[5,7]"; only the element type if `shape` is false.
KERNIX_COLD inline void DescribeBuffer(const ffi::Buffer& buffer, bool shape, char (&text)[256]) {
  int used =
      __builtin_snprintf(text, 64, "%s%s", BE::dtype_name(BE::internal::DTypeFromXla(buffer.dtype)), shape ? "[" : "");
  for (int64_t i = 0; shape && i < buffer.rank && i < BE::kMaxDim; ++i) {
    used += __builtin_snprintf(text + used, 24, "%s%lld", i == 0 ? "" : ",", static_cast<long long>(buffer.dims[i]));
  }
  if (shape) __builtin_snprintf(text + used, 8, buffer.rank > BE::kMaxDim ? ",...]" : "]");
}

// Whether JAX makes elements of `narrow` of those of `wide`, unless its option jax_enable_x64 is set.
KERNIX_COLD inline bool IsNarrowed(BE::DType wide, BE::DType narrow) {
  using D = BE::DType;
  return (wide == D::Float64 && narrow == D::Float32) || (wide == D::Int64 && narrow == D::Int32) ||
         (wide == D::UInt64 && narrow == D::UInt32) || (wide == D::Complex128 && narrow == D::Complex64);
}

// The end of the error for an array of another type: the likely cause.
KERNIX_COLD inline const char* CauseOf(const ArrayType& type, const ffi::Buffer& buffer) {
  const BE::DType given = BE::internal::DTypeFromXla(buffer.dtype);
  if (IsNarrowed(type.dtype, given)) return ". JAX makes 64-bit types 32-bit ones unless jax_enable_x64 is set";
  if (given == type.dtype && buffer.rank > type.rank) {
    return ". If jax.vmap has added a dimension: vmap_method=\"sequential\" calls the function without it";
  }
  return KERNIX_TRACE_AGAIN;
}

KERNIX_COLD inline ffi::Error* WrongArray(const ffi::CallFrame* frame, const Signature& signature,
                                          const ArrayType& type, int64_t place, const ffi::Buffer& buffer) {
  char takes[64];
  char got[256];
  DescribeType(type, takes);
  DescribeBuffer(buffer, type.rank != BE::kAnyRank, got);
  const bool named = type.name[0] != '\0';
  return Fail(frame, signature, ffi::kInvalidArgument, "%s %lld%s%s%s takes %s, got %s%s",
              type.is_result ? "result" : "argument", static_cast<long long>(place), named ? " (" : "", type.name,
              named ? ")" : "", takes, got, CauseOf(type, buffer));
}

// Checks the arrays of a call against `count` types. ReadList() checks what is missing or not an array.
KERNIX_COLD inline ffi::Error* CheckArrays(const ffi::CallFrame* frame, const Signature& signature,
                                           const ArrayType* types, int count) {
  for (int i = 0; i < count; ++i) {
    const ffi::Buffers& buffers = types[i].is_result ? frame->rets : frame->args;
    const int64_t place = types[i].place < 0 ? buffers.size + types[i].place : types[i].place;
    if (place < 0 || place >= buffers.size || buffers.types[place] != ffi::kBuffer) continue;
    const ffi::Buffer& buffer = *static_cast<const ffi::Buffer*>(buffers.buffers[place]);
    const BE::DType dtype = BE::internal::DTypeFromXla(buffer.dtype);
    if (dtype == BE::DType::Invalid) continue;
    if (dtype == types[i].dtype && (types[i].rank == BE::kAnyRank || types[i].rank == buffer.rank)) continue;
    return WrongArray(frame, signature, types[i], place, buffer);
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
KERNIX_COLD inline bool AnswerMetadata(const ffi::CallFrame* frame, const Signature& signature) {
  ffi::ExtensionBase* extension = frame->extension_start;
  if (extension == nullptr || extension->type != ffi::kExtensionMetadata) return false;
  ffi::Metadata* metadata = reinterpret_cast<ffi::MetadataExtension*>(extension)->metadata;
  metadata->api_version.major_version = ffi::kApiMajor;
  metadata->api_version.minor_version = ffi::kApiMinor;
  metadata->traits = signature.traits;
  return true;
}

#if KERNIX_HAS_EXCEPTIONS
// What the user's function has thrown, in words. What goes beyond the limit is dropped.
struct ThrownText {
  char text[768] = "";
  int used = 0;

  KERNIX_COLD void Add(const char* format, ...) {
    va_list values;
    va_start(values, format);
    used += __builtin_vsnprintf(text + used, sizeof(text) - static_cast<size_t>(used), format, values);
    va_end(values);
    if (used >= static_cast<int>(sizeof(text))) used = static_cast<int>(sizeof(text)) - 1;
  }
};

// Adds what is being handled, and its causes, after `verb`. Exceptions of BE_CHECK and the like say where they come
// from: if they are no cause, they need no verb.
KERNIX_COLD inline void AddThrown(const char* verb, ThrownText& thrown);

#if defined(__GXX_RTTI)
// Adds the name of a type; that of E for std::throw_with_nested(E()).
KERNIX_COLD inline void AddType(const char* type, ThrownText& thrown) {
  static constexpr char kNested[] = "std::_Nested_exception<";
  char* readable = __cxxabiv1::__cxa_demangle(type, nullptr, nullptr, nullptr);
  const char* name = readable != nullptr ? readable : type;
  size_t size = __builtin_strlen(name);
  if (__builtin_strncmp(name, kNested, sizeof(kNested) - 1) == 0) {
    name += sizeof(kNested) - 1;
    size -= sizeof(kNested);            // with its last '>'
    if (name[size - 1] == ' ') --size;  // "E<int> >"
  }
  thrown.Add("%.*s", static_cast<int>(size), name);
  __builtin_free(readable);
}
#endif

#if defined(__GXX_RTTI) && defined(__GLIBCXX__)
// std::exception_ptr. <exception> would need functions that the libraries of older compilers do not have.
struct ExceptionPtr;
void Release(ExceptionPtr* exception) __asm__("_ZNSt15__exception_ptr13exception_ptrD1Ev");
struct ExceptionPtr {
  const void* object;
  ~ExceptionPtr() { Release(this); }
};
ExceptionPtr CurrentException() __asm__("_ZSt17current_exceptionv");
[[noreturn]] void Rethrow(const ExceptionPtr& exception) __asm__(
    "_ZSt17rethrow_exceptionNSt15__exception_ptr13exception_ptrE");

// std::nested_exception, and what dynamic_cast calls.
struct NestedException {
  const void* functions;
  ExceptionPtr cause;
};
extern const std::type_info kNestedException __asm__("_ZTISt16nested_exception");
const void* DynamicCast(const void* object, const std::type_info* from, const std::type_info* to,
                        ptrdiff_t hint) __asm__("__dynamic_cast");

// Adds the cause that std::throw_with_nested() has stored with an exception, if there is one.
KERNIX_COLD inline void AddCause(const std::exception& exception, ThrownText& thrown) {
  const void* nested = DynamicCast(&exception, &typeid(std::exception), &kNestedException, -1);
  if (nested == nullptr || static_cast<const NestedException*>(nested)->cause.object == nullptr) return;
  try {
    Rethrow(static_cast<const NestedException*>(nested)->cause);
  } catch (...) {
    AddThrown("; caused by ", thrown);
  }
}

// Adds a thrown std::string or std::string_view. <string> would double what it takes to compile this header.
KERNIX_COLD inline bool AddString(const char* type, ThrownText& thrown) {
  if (__builtin_strcmp(type, "St17basic_string_viewIcSt11char_traitsIcEE") == 0) {
    struct View {
      size_t size;
      const char* text;
    };
    const ExceptionPtr exception = CurrentException();
    const View& view = *static_cast<const View*>(exception.object);
    thrown.Add("a std::string_view: %s", BE::internal::Text().Add(view.text, view.size).c_str());
    return true;
  }
  const bool is_old = __builtin_strcmp(type, "Ss") == 0;  // with -D_GLIBCXX_USE_CXX11_ABI=0
  if (!is_old && __builtin_strcmp(type, "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE") != 0) return false;
  const ExceptionPtr exception = CurrentException();
  struct String {  // as a string begins; an old one has only the pointer
    const char* text;
    size_t size;
  };
  const String& string = *static_cast<const String*>(exception.object);
  const size_t size = is_old ? __builtin_strlen(string.text) : string.size;
  thrown.Add("a std::string: %s", BE::internal::Text().Add(string.text, size).c_str());
  return true;
}
#else
inline void AddCause(const std::exception&, ThrownText&) {}
inline bool AddString(const char*, ThrownText&) { return false; }
#endif

void AddThrown(const char* verb, ThrownText& thrown) {
  try {
    throw;
  } catch (const std::exception& exception) {
#if defined(__GXX_RTTI)
    const char* type = typeid(exception).name();
    const bool is_ours = __builtin_strncmp(type, "N2BE", 4) == 0;
    if (!is_ours || thrown.used > 0) thrown.Add("%s", verb);
    if (!is_ours) AddType(type, thrown);
    if (!is_ours) thrown.Add(": ");
#endif
    thrown.Add("%s", exception.what());
    AddCause(exception, thrown);
  } catch (const char* text) {
    thrown.Add("%sa text: %s", verb, text);
  } catch (int number) {
    thrown.Add("%sthe int %d", verb, number);
  } catch (...) {
    thrown.Add("%s", verb);
#if defined(__GXX_RTTI)
    const std::type_info* info = __cxxabiv1::__cxa_current_exception_type();  // null: not of C++
    if (info != nullptr && AddString(info->name(), thrown)) return;
    AddType(info != nullptr ? info->name() : "something", thrown);
#else
    thrown.Add("something");
#endif
    thrown.Add(", which is no std::exception, so it has no what() to show");
  }
}
#endif

// Calls `function` and turns its exceptions into errors.
inline ffi::Error* Invoke([[maybe_unused]] const ffi::CallFrame* frame, [[maybe_unused]] const Signature& signature,
                          Call& call, void (*function)(Call&)) {
#if KERNIX_HAS_EXCEPTIONS
  try {
    function(call);
  } catch (...) {
    ThrownText thrown;
    AddThrown("threw ", thrown);
    return Fail(frame, signature, ffi::kInternal, "%s", thrown.text);
  }
#else
  function(call);
#endif
  return nullptr;
}

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
  const bool open = roles.rest >= 0;
  const int fewest = roles.count - roles.optional - (open ? 1 : 0);
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

// The role of buffer `index` out of `given`.
inline BufferRole RoleOf(const BufferRoles& roles, int64_t index, int64_t given) {
  if (roles.roles == nullptr) return kTensor;
  if (roles.rest < 0 || index < roles.rest) return roles.roles[index];
  const int64_t places_after = roles.count - roles.rest - 1;
  return given - index > places_after ? kTensor : roles.roles[roles.count - (given - index)];
}

// Fills `list` from `buffers`, which must match `roles`.
KERNIX_COLD inline ffi::Error* ReadList(const ffi::CallFrame* frame, const Signature& signature, const char* what,
                                        const ffi::Buffers& buffers, const BufferRoles& roles, BE::Tensor* tensors,
                                        TensorList& list) {
  ffi::Error* error = CheckCount(frame, signature, what, roles, buffers.size);
  for (int64_t i = 0; error == nullptr && i < buffers.size; ++i) {
    const bool token = RoleOf(roles, i, buffers.size) == kToken;
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
ffi::Error* NotInThisRuntime(const ffi::CallFrame* frame, const Signature& signature, const char* token,
                             const char* function) {
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

ffi::Error* RunHandler(const ffi::CallFrame* frame, const char* module, const Handler& handler) {
  Signature signature = handler.signature;
  signature.module = module;
  if (AnswerMetadata(frame, signature)) return nullptr;
  if (frame->stage != ffi::kStageExecute) {
    return Fail(frame, signature, ffi::kInvalidArgument, "can only be called to execute");
  }
  const TensorRoom room(frame->args.size + frame->rets.size);
  BE::Tensor* results = room.tensors() + frame->args.size;
  const size_t attributes = static_cast<size_t>(signature.attribute_count);
  Call call = {frame, &signature, static_cast<AttributeValue*>(__builtin_alloca(attributes * sizeof(AttributeValue)))};
  ffi::Error* error = LeaveOut(frame, signature.attribute_count - handler.optional_attributes, signature);
  if (error == nullptr) error = CheckArrays(frame, signature, handler.types, handler.type_count);
  if (error == nullptr) {
    error = ReadList(frame, signature, "argument", frame->args, signature.arguments, room.tensors(), call.arguments);
  }
  if (error == nullptr) {
    error = ReadList(frame, signature, "result", frame->rets, signature.results, results, call.results);
  }
  if (error == nullptr) error = ReadAttributes(frame, signature, call.attributes);
  if (error == nullptr && !handler.launches && frame->attributes.size > signature.attribute_count) {
    error = UnexpectedAttribute(frame, signature);
  }
  if (error == nullptr && handler.stream != kNoStream) error = ReadStream(frame, handler.stream, call.stream);
  if (error == nullptr && handler.takes_device_ordinal) {
    error = ReadDeviceOrdinal(frame, signature, call.device_ordinal);
  }
  if (error == nullptr) error = Invoke(frame, signature, call, handler.function);
  if (error == nullptr) return call.error;
  if (call.error != nullptr) {
    ffi::ErrorDestroyArgs destroy = {sizeof(destroy), nullptr, call.error};
    frame->api->error_destroy(&destroy);
  }
  return error;
}

}  // namespace kernix_handler
