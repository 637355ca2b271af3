// SPDX-License-Identifier: Apache-2.0
//
// Attributes in general, and scalar attributes. The generated code includes this header only for functions with
// attributes.
#pragma once

#include "brainevent/internal/handler.h"

namespace kernix_handler {

inline const char* TypeName(AttributeType type) {
  static constexpr const char* kNames[] = {"bool",   "int8",   "int16",   "int32",    "int64",   "uint8",   "uint16",
                                           "uint32", "uint64", "float16", "bfloat16", "float32", "float64", "string"};
  return kNames[type];
}

// The name that NumPy uses. A table compiles faster than dtype_name().
inline const char* XlaTypeName(ffi::DataType type) {
  static constexpr const char* kNames[] = {"nothing",
                                           "bool",
                                           "int8",
                                           "int16",
                                           "int32",
                                           "int64",
                                           "uint8",
                                           "uint16",
                                           "uint32",
                                           "uint64",
                                           "float16",
                                           "float32",
                                           "float64",
                                           "a tuple",
                                           "an opaque",
                                           "complex64",
                                           "bfloat16",
                                           "a token",
                                           "complex128",
                                           "float8_e5m2",
                                           "float8_e4m3fn",
                                           "int4",
                                           "uint4",
                                           "float8_e4m3b11fnuz",
                                           "float8_e5m2fnuz",
                                           "float8_e4m3fnuz",
                                           "int2",
                                           "uint2",
                                           "float8_e4m3",
                                           "float8_e3m4",
                                           "int1",
                                           "uint1",
                                           "float4_e2m1fn",
                                           "float8_e8m0fnu"};
  return type < sizeof(kNames) / sizeof(kNames[0]) ? kNames[type] : "a type that kernix does not know";
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

// Stores the value of `scalar` as `type`. If it does not fit, describes why in `problem` and returns false.
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

// For functions that have only scalar attributes.
KERNIX_SMALL inline bool ReadScalarAttribute(const AttributeSpec& spec, ffi::AttributeTag tag, const void* given,
                                             AttributeValue& value, Problem& problem) {
  problem = {"must be a scalar"};
  return tag == ffi::kAttributeScalar && ReadScalar(*static_cast<const ffi::Scalar*>(given), spec.type, value, problem);
}

// XLA sorts attributes by name, and there are few of them.
template <AttributeReader* kReader>
ffi::Error* ReadAttributes(const ffi::CallFrame* frame, const Signature& signature, AttributeValue* values) {
  const ffi::Attributes& given = frame->attributes;
  for (int k = 0; k < signature.attribute_count; ++k) {
    const AttributeSpec& spec = signature.attributes[k];
    Problem problem = {"is missing" KERNIX_TRACE_AGAIN};
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

}  // namespace kernix_handler
