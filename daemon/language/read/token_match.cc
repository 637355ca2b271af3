// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/read/token_match.h"

#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "daemon/language/spec/arg_spec.h"
#include "daemon/language/spec/words.h"

namespace kernix::language {
namespace {

void Specify(const SignatureParameter& declared, Parameter& parameter) {
  if (!parameter.IsArrays()) return;
  if (IsValidUtf8(declared.name)) parameter.declared_name = declared.name;  // a compiler takes any bytes
  if (parameter.kind != ParameterKind::kArgument && parameter.kind != ParameterKind::kResult) return;
  parameter.is_opaque = declared.is_unread_view && parameter.IsTyped();
  if (parameter.element.empty()) parameter.element = declared.element;
  parameter.is_pointer = declared.is_pointer;
  if (parameter.rank == kAnyRank) parameter.rank = declared.rank;
}

bool IsReal(AttributeType type) { return type == AttributeType::kFloat32 || type == AttributeType::kFloat64; }

// Sets `narrowed_to` and `is_opaque`. Otherwise C++ converts; it also converts any number to a bool.
void NoteConversion(const SignatureParameter& declared, Parameter& parameter) {
  if (parameter.kind != ParameterKind::kAttribute || parameter.attribute_type == AttributeType::kString) return;
  if (declared.is_deduced) {  // from what is passed
    parameter.is_opaque = false;
    return;
  }
  // A class template may have a constructor for anything. None is the bytes of an array.
  if (declared.kind == ParameterClass::kOther) {
    parameter.is_opaque = parameter.is_opaque || parameter.is_array || !declared.is_template;
  }
  if (!declared.IsNumber()) return;
  parameter.is_opaque = false;
  if (declared.scalar == AttributeType::kBool) return;
  const bool half = IsHalf(parameter.attribute_type);
  if (half ? IsReal(declared.scalar) : !FitsAlways(parameter.attribute_type, declared.scalar)) {
    parameter.narrowed_to = declared.scalar;
  }
}

// Whether both may be of the same arrays. A BE::Tensor takes any.
bool AgreesOnArrays(const Parameter& token, const SignatureParameter& parameter) {
  const bool is_input = parameter.kind == ParameterClass::kInput;
  if (parameter.is_pointer && token.kind == ParameterKind::kResult && is_input) return false;
  if (parameter.element.empty()) return true;
  const bool same_rank = token.rank == kAnyRank || parameter.rank == kAnyRank || token.rank == parameter.rank;
  const bool same_kind = parameter.is_pointer || is_input == (token.kind == ParameterKind::kArgument);
  return same_kind && same_rank && (token.element.empty() || token.element == parameter.element);
}

// What a parameter for the token is instead of one that cannot come from JAX.
std::string WhatToTake(const Parameter& token, const SignatureParameter& parameter) {
  switch (token.kind) {
    case ParameterKind::kOptionalArgument:
      return "take a const BE::Tensor*, which is null if the call leaves it out";
    case ParameterKind::kArguments:
      return "take a BE::Span<const BE::Tensor>";
    case ParameterKind::kResults:
      return "take a BE::Span<BE::Tensor>";
    case ParameterKind::kScratch:
      return "take a BE::Scratch, whose data() is the pointer";
    case ParameterKind::kAttribute:
      if (token.is_array) return "take a BE::Span<const T>, whose data() is the pointer";
      if (token.attribute_type == AttributeType::kString) return "take a std::string_view";
      return "take it by value";
    default:
      return parameter.problem;
  }
}

}  // namespace

size_t CountWithoutLeftOut(const Signature& signature) {
  size_t count = signature.parameters.size();
  const auto left_out = [](const SignatureParameter& parameter) {
    const bool nameless = parameter.IsAttribute() && !IsPlainIdentifier(parameter.name);
    return parameter.has_default && (nameless || parameter.kind == ParameterClass::kOther);
  };
  while (count > 0 && left_out(signature.parameters[count - 1])) --count;
  return count;
}

void NoteDefaults(const Signature& signature, FunctionSpec& spec) {
  const size_t count = spec.parameters.size();
  for (size_t i = count; i > 0 && count - i < kMaxDefaults; --i) {
    Parameter& parameter = spec.parameters[i - 1];
    if (parameter.kind != ParameterKind::kAttribute || !signature.parameters[i - 1].has_default) return;
    parameter.has_default = true;
  }
}

std::string_view ProblemOfInference(const SignatureParameter& declared) {
  if (!declared.problem.empty() || !declared.IsAttribute()) return declared.problem;
  if (declared.name.empty()) return "an attribute needs a name";
  if (IsPlainIdentifier(declared.name)) return "";
  return "an attribute's name may contain only the letters a to z, digits and '_'. Rename it, or write out the tokens "
         "with another name";
}

Parameter TokenOf(const SignatureParameter& declared) {
  Parameter token;
  switch (declared.kind) {
    case ParameterClass::kOutput:
      token.kind = ParameterKind::kResult;
      break;
    case ParameterClass::kStream:
      token.kind = ParameterKind::kStream;
      break;
    case ParameterClass::kScalar:
    case ParameterClass::kString:
    case ParameterClass::kArray:
      return AttributeOf(declared);
    case ParameterClass::kOptionalInput:
      token.kind = ParameterKind::kOptionalArgument;
      break;
    case ParameterClass::kInputs:
      token.kind = ParameterKind::kArguments;
      break;
    case ParameterClass::kOutputs:
      token.kind = ParameterKind::kResults;
      break;
    case ParameterClass::kDeviceOrdinal:
      token.kind = ParameterKind::kDeviceOrdinal;
      break;
    case ParameterClass::kInput:
    case ParameterClass::kScratch:  // there is a problem with each of these
    case ParameterClass::kTensorMap:
    case ParameterClass::kOther:
      break;
  }
  Specify(declared, token);
  return token;
}

Parameter AttributeOf(const SignatureParameter& parameter) {
  return {ParameterKind::kAttribute, parameter.name, parameter.scalar, parameter.kind == ParameterClass::kArray};
}

void Complete(const SignatureParameter& declared, Parameter& token) {
  Specify(declared, token);
  NoteConversion(declared, token);
}

bool Fits(const Parameter& token, const SignatureParameter& parameter) {
  const ParameterClass kind = parameter.kind;
  const bool number = parameter.IsNumber();
  if (kind == ParameterClass::kOther) return true;
  switch (token.kind) {
    case ParameterKind::kArgument:
    case ParameterKind::kResult:
      if (token.IsTensorMap() || kind == ParameterClass::kTensorMap) {
        return token.IsTensorMap() && kind == ParameterClass::kTensorMap;
      }
      if (parameter.IsTensor()) return AgreesOnArrays(token, parameter);
      return kind == ParameterClass::kStream && !token.IsTyped();
    case ParameterKind::kStream:
      return number || kind == ParameterClass::kStream;
    case ParameterKind::kAttribute:
      if (token.is_array) return kind == ParameterClass::kArray;
      if (token.attribute_type == AttributeType::kString) return kind == ParameterClass::kString;
      if (IsHalf(token.attribute_type)) {
        return number && (IsReal(parameter.scalar) || parameter.scalar == AttributeType::kUInt16);
      }
      return number || kind == ParameterClass::kStream;
    case ParameterKind::kOptionalArgument:
      return kind == ParameterClass::kOptionalInput;
    case ParameterKind::kArguments:
      return kind == ParameterClass::kInputs;
    case ParameterKind::kResults:
      return kind == ParameterClass::kOutputs;
    case ParameterKind::kDeviceOrdinal:
      return number;
    case ParameterKind::kScratch:
      return kind == ParameterClass::kScratch;
    case ParameterKind::kArgumentToken:
    case ParameterKind::kResultToken:
      break;
  }
  return true;
}

std::string ProblemOfToken(const Parameter& token, const SignatureParameter& parameter) {
  if (parameter.kind != ParameterClass::kOther) return "";
  const bool attribute = token.kind == ParameterKind::kAttribute;
  const bool arrays = token.kind == ParameterKind::kArgument || token.kind == ParameterKind::kResult;
  const bool stream = token.kind == ParameterKind::kStream;  // a CUstream_st*
  const auto is = [&](std::string_view text) { return HasText(parameter.text, text); };
  const auto is_a = [&](std::string_view text) { return is(text) && !is(">::"); };  // not std::vector<int>::size_type
  const bool owns = is_a("std::vector<") || (is_a("std::optional<") && !attribute) ||
                    (attribute && token.attribute_type == AttributeType::kString &&
                     parameter.problem.ends_with("take a std::string_view"));
  const bool has_object = arrays || stream || token.kind == ParameterKind::kDeviceOrdinal;  // that it may refer to
  const bool refused = (parameter.points && !stream) || (parameter.is_mutable && !has_object) || owns;
  return refused ? WhatToTake(token, parameter) : "";
}

}  // namespace kernix::language
