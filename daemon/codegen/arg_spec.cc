// SPDX-License-Identifier: Apache-2.0
#include "daemon/codegen/arg_spec.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/escaping.h"
#include "daemon/base/error.h"
#include "daemon/base/status_macros.h"
#include "daemon/base/strings.h"
#include "daemon/codegen/lexer.h"
#include "daemon/codegen/words.h"

namespace kernix::codegen {
namespace {

absl::Status Invalid(std::string_view function, std::string_view problem) {
  return MakeError(v1::ErrorDetail::INVALID_REQUEST, StrCat("function '", function, "': ", problem));
}

std::string Quoted(std::string_view text) { return StrCat("'", absl::CHexEscape(ToAbsl(text)), "'"); }

constexpr std::string_view kAttributeTypeList =
    "bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float32, float64, float16 and bfloat16 (as bits), "
    "string, and arrays such as float32[]";

absl::Status UnknownType(std::string_view function, std::string_view token, std::string_view type) {
  std::string problem =
      StrCat("the token ", Quoted(token), " has the type ", Quoted(type), ", which XLA cannot pass as an attribute");
  if (HasText(type, "complex")) StrAppend(&problem, "; pass real and imaginary part as two attributes");
  return Invalid(function, StrCat(problem, ". Types of attributes: ", kAttributeTypeList));
}

absl::Status UnknownArray(std::string_view function, std::string_view token, AttributeType element) {
  const std::string_view remedy = element == AttributeType::kBool     ? "; pass uint8[]"
                                  : element == AttributeType::kString ? "; pass one string"
                                                                      : "; pass their bits, a uint16[]";
  return Invalid(function,
                 StrCat("the token ", Quoted(token), ": XLA passes no arrays of ", AttributeTypeName(element), remedy));
}

// "float32" or "float32[]".
absl::Status ParseType(std::string_view function, std::string_view token, std::string_view type, Parameter& parameter) {
  std::string_view element = type;
  parameter.is_array = ConsumeSuffix(element, "[]");
  if (!ParseAttributeType(element, parameter.attribute_type)) return UnknownType(function, token, type);
  if (parameter.is_array && !CanBeArray(parameter.attribute_type)) {
    return UnknownArray(function, token, parameter.attribute_type);
  }
  return absl::OkStatus();
}

// `text` is what stands after "attr.".
absl::StatusOr<ParsedToken> ParseAttribute(std::string_view function, std::string_view token, std::string_view text) {
  ParsedToken parsed;
  parsed.parameter.kind = ParameterKind::kAttribute;
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  parsed.parameter.attribute_name = std::string(name);
  if (!IsPlainIdentifier(name) && !IsKeyword(name)) {
    return Invalid(function, StrCat("the token ", Quoted(token), " names the attribute ", Quoted(name),
                                    ", which is no C++ identifier"));
  }
  parsed.typed = colon != std::string_view::npos;
  if (!parsed.typed) return parsed;
  KERNIX_RETURN_IF_ERROR(ParseType(function, token, text.substr(colon + 1), parsed.parameter));
  return parsed;
}

}  // namespace

absl::StatusOr<ParsedToken> ParseToken(std::string_view function, std::string_view token) {
  ParsedToken parsed;
  std::string_view rest = token;
  if (token == "arg" || token == "args") return parsed;
  if (token == "ret" || token == "rets") {
    parsed.parameter.kind = ParameterKind::kResult;
    return parsed;
  }
  if (token == "stream" || token == "ctx.stream") {
    parsed.parameter.kind = ParameterKind::kStream;
    return parsed;
  }
  if (ConsumePrefix(rest, "attr.") || ConsumePrefix(rest, "attrs.")) {
    return ParseAttribute(function, token, rest);
  }
  return Invalid(
      function, StrCat("unknown token ", Quoted(token), ". Tokens: arg, ret, stream, attr.<name>:<type>, attr.<name>"));
}

absl::Status CheckSpec(const FunctionSpec& spec) {
  if (spec.CountOf(ParameterKind::kStream) > 1) return Invalid(spec.name, "duplicate 'stream': a call has one stream");
  if (spec.CountOf(ParameterKind::kResult) == 0) {
    return Invalid(spec.name, "no 'ret': a function must have an output (a BE::Tensor parameter that is not const)");
  }
  absl::flat_hash_set<std::string_view> names;
  for (const Parameter& parameter : spec.parameters) {
    if (parameter.kind != ParameterKind::kAttribute || names.insert(parameter.attribute_name).second) continue;
    return Invalid(spec.name, StrCat("duplicate attribute ", Quoted(parameter.attribute_name)));
  }
  return absl::OkStatus();
}

absl::Status CheckFunctionName(std::string_view name) {
  if (IsPlainIdentifier(name)) return absl::OkStatus();
  const std::string_view problem =
      IsKeyword(name) ? "is a C++ keyword" : "is no C++ identifier (letters, digits and '_', no digit first)";
  return MakeError(v1::ErrorDetail::INVALID_REQUEST, StrCat("the function name ", Quoted(name), " ", problem));
}

}  // namespace kernix::codegen
