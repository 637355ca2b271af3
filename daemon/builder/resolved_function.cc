// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/resolved_function.h"

#include "common/base/strings.h"
#include "daemon/language/spec/arg_spec.h"

namespace kernix::build {
namespace {

using language::ParameterKind;

v1::Parameter::Role RoleOf(ParameterKind kind) {
  switch (kind) {
    case ParameterKind::kArgument:
    case ParameterKind::kOptionalArgument:
    case ParameterKind::kArguments:
      return v1::Parameter::ARGUMENT;
    case ParameterKind::kResult:
    case ParameterKind::kResults:
      return v1::Parameter::RESULT;
    case ParameterKind::kAttribute:
      return v1::Parameter::ATTRIBUTE;
    case ParameterKind::kArgumentToken:
      return v1::Parameter::ARGUMENT_TOKEN;
    case ParameterKind::kResultToken:
      return v1::Parameter::RESULT_TOKEN;
    case ParameterKind::kStream:
    case ParameterKind::kDeviceOrdinal:
    case ParameterKind::kScratch:
      return v1::Parameter::PROVIDED;
  }
  return v1::Parameter::ROLE_UNSPECIFIED;
}

v1::Parameter ParameterOf(const cache::Function& function, size_t place) {
  v1::Parameter proto;
  const auto parsed = language::ParseToken(function.name, function.tokens[place]);
  if (!parsed.ok()) return proto;
  const language::Parameter& parameter = parsed->parameter;
  proto.set_role(RoleOf(parameter.kind));
  proto.set_name(parameter.attribute_name);
  if (parameter.kind != ParameterKind::kAttribute && place < function.parameter_names.size()) {
    proto.set_name(function.parameter_names[place]);
  }
  proto.set_type(parameter.TypeName());
  if (parameter.rank != language::kAnyRank) proto.set_rank(static_cast<uint32_t>(parameter.rank));
  proto.set_optional(parameter.has_default || parameter.kind == ParameterKind::kOptionalArgument);
  proto.set_variadic(parameter.kind == ParameterKind::kArguments || parameter.kind == ParameterKind::kResults);
  return proto;
}

}  // namespace

v1::ResolvedFunction ResolvedFunctionOf(const cache::Function& function) {
  v1::ResolvedFunction proto;
  proto.set_name(function.name);
  proto.mutable_tokens()->Assign(function.tokens.begin(), function.tokens.end());
  proto.set_handler_symbol(function.handler_symbol);
  proto.set_is_global(function.is_global);
  for (size_t i = 0; i < function.tokens.size(); ++i) *proto.add_parameter() = ParameterOf(function, i);
  return proto;
}

}  // namespace kernix::build
