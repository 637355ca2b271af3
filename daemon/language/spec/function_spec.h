// SPDX-License-Identifier: Apache-2.0
//
// A function as its callers see it: its parameters, in the order of its C++ signature.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace kernix::language {

// Element types of arrays, by the names that NumPy (with ml_dtypes) gives them.
struct ElementType {
  std::string_view name;   // "float32"
  std::string_view dtype;  // the enumerator of BE::DType: "Float32"
};

// nullptr if `name` is no element type, or one of less than a byte, for which there is no C++ type.
const ElementType* FindElementType(std::string_view name);

// The names of all element types, separated by commas.
std::string ElementTypeList();

enum class ParameterKind {
  kArgument,
  kResult,
  kStream,
  kAttribute,
  kOptionalArgument,  // a pointer; null if the call has no such argument
  kArguments,         // all remaining arguments
  kResults,           // all remaining results
  kArgumentToken,     // an XLA token, for which the function has no parameter
  kResultToken,
  kDeviceOrdinal,
  kScratch,
};

// A token that has no variable part.
struct PlainToken {
  std::string_view token;
  ParameterKind kind;
};

inline constexpr PlainToken kPlainTokens[] = {
    {"arg", ParameterKind::kArgument},
    {"ret", ParameterKind::kResult},
    {"stream", ParameterKind::kStream},
    {"arg?", ParameterKind::kOptionalArgument},
    {"args...", ParameterKind::kArguments},
    {"rets...", ParameterKind::kResults},
    {"arg.token", ParameterKind::kArgumentToken},
    {"ret.token", ParameterKind::kResultToken},
    {"device_ordinal", ParameterKind::kDeviceOrdinal},
    // Aliases, which only callers write:
    {"args", ParameterKind::kArgument},
    {"rets", ParameterKind::kResult},
    {"ctx.stream", ParameterKind::kStream},
};

// Types of attributes. Half types are passed as raw bits in a uint16_t.
enum class AttributeType {
  kBool,
  kInt8,
  kUInt8,
  kInt16,
  kUInt16,
  kInt32,
  kUInt32,
  kInt64,
  kUInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
  kString,
};

// "float32" and so on.
std::string_view AttributeTypeName(AttributeType type);
// The type in the code of handlers (kernix_handler::AttributeType): "kFloat32".
std::string_view AttributeTypeEnumerator(AttributeType type);
// False if `name` is no attribute type.
bool ParseAttributeType(std::string_view name, AttributeType& type);

// Whether the type is a half: float16 or bfloat16.
inline bool IsHalf(AttributeType type) { return type == AttributeType::kFloat16 || type == AttributeType::kBFloat16; }

// Whether XLA passes arrays of that type as attributes.
bool CanBeArray(AttributeType type);

// Whether `to` can represent every value of `from`.
bool FitsAlways(AttributeType from, AttributeType to);

constexpr int kAnyRank = -1;
constexpr int kMaxRank = 8;  // BE::kMaxDim

struct Parameter {
  ParameterKind kind = ParameterKind::kArgument;
  std::string attribute_name;  // kAttribute only
  AttributeType attribute_type = AttributeType::kFloat32;
  bool is_array = false;  // an array of that type; kAttribute only
  // The C++ parameter's type, if a value of `attribute_type` may not fit into it; kAttribute only.
  std::optional<AttributeType> narrowed_to = {};
  // The compiler converts to the type of the C++ parameter, which kernix has not read: an enum, a struct, a half. Of
  // arguments and results only a BE::In or BE::Out.
  bool is_opaque = false;
  bool has_default = false;  // calls may leave it out; kAttribute only
  std::string expression;    // kScratch: a number of bytes; of a tensor map: the sizes of its box, as "64,32"
  // The arrays that kArgument or kResult takes: a name of FindElementType(), or empty for any type.
  std::string element = {};
  int rank = kAnyRank;             // only with `element`
  std::string declared_name = {};  // the C++ parameter's name if the signature says it; arguments and results only
  bool is_pointer = false;         // the C++ parameter is a T*, of a __global__ function
  int swizzle = 0;                 // of a tensor map: 0, or the bytes within which it swizzles

  bool IsTyped() const { return !element.empty(); }

  // Whether the function receives an argument or a result as a CUtensorMap.
  bool IsTensorMap() const { return kind != ParameterKind::kScratch && !expression.empty(); }

  // Whether the function receives an array, or several, of a call.
  bool IsArrays() const;

  // The type of an attribute ("float32", "int64[]"), or the element type of arrays (empty for any type).
  std::string TypeName() const;

  // The type in which the function receives the attribute.
  AttributeType PassedAs() const { return narrowed_to.value_or(attribute_type); }

  // Whether the function has a C++ parameter for it.
  bool IsVisible() const { return kind != ParameterKind::kArgumentToken && kind != ParameterKind::kResultToken; }
};

// The attributes with which a call of a __global__ function says how to launch it.
inline constexpr std::array<std::string_view, 5> kLaunchAttributes = {"grid", "block", "shared", "cluster",
                                                                      "cooperative"};

// The stream parameter may have any C++ type that can be a stream: the wrapper converts.
struct FunctionSpec {
  std::string name;
  std::vector<Parameter> parameters;
  std::string callee = {};  // the C++ name to call, if it differs from `name`: "a::b::f", "f<float>"
  bool is_global = false;   // a __global__ function: the handler launches it as the call's kLaunchAttributes say
  // Where the tokens were written; the label is empty if they are not part of a source.
  std::string label = {};
  int line = 0;
  std::string declared_at = {};  // where its only declaration is, as "add.cu:7"; empty if the sources have none
  bool is_inferred = false;      // the tokens come from the signature

  const std::string& Callee() const { return callee.empty() ? name : callee; }
  // In the form that ParseToken() in arg_spec.h reads, without aliases.
  std::vector<std::string> Tokens() const;
  std::string HandlerSymbol() const;  // "kernix_handler_<name>"
  int CountOf(ParameterKind kind) const;
  bool HasTyped() const;  // whether some parameter takes arrays of one element type only

  // The kind of each argument of a call, and of each result, including XLA tokens.
  std::vector<ParameterKind> Arguments() const;
  std::vector<ParameterKind> Results() const;

  // How many attributes a call may leave out. They are the last parameters in the call of the function.
  int DefaultCount() const;
};

}  // namespace kernix::language
