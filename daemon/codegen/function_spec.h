// SPDX-License-Identifier: Apache-2.0
//
// What a user function looks like from outside: its parameters, in the order of its C++ signature.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace kernix::codegen {

enum class ParameterKind { kArgument, kResult, kStream, kAttribute };

// Types of attributes. Half types are passed as their raw bits in a uint16_t.
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

// "float32" and so on; empty when `name` is no attribute type.
std::string_view AttributeTypeName(AttributeType type);
bool ParseAttributeType(std::string_view name, AttributeType& type);

// Whether XLA passes arrays of that type as attributes.
bool CanBeArray(AttributeType type);

struct Parameter {
  ParameterKind kind = ParameterKind::kArgument;
  std::string attribute_name;  // kAttribute only
  AttributeType attribute_type = AttributeType::kFloat32;
  bool is_array = false;  // of that type; kAttribute only
};

// What the stream parameter's C++ type is: the wrapper converts.
struct FunctionSpec {
  std::string name;
  std::vector<Parameter> parameters;

  // "arg", "ret", "stream", "attr.<name>:<type>", "attr.<name>:<type>[]".
  std::vector<std::string> Tokens() const;
  std::string HandlerSymbol() const;  // "kernix_handler_<name>"
  int CountOf(ParameterKind kind) const;
};

}  // namespace kernix::codegen
