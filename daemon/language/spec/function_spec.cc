// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/spec/function_spec.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "absl/strings/str_join.h"
#include "common/base/strings.h"

namespace kernix::language {
namespace {

constexpr std::array<ElementType, 23> kElementTypes = {{
    {"bool", "Bool"},
    {"int8", "Int8"},
    {"int16", "Int16"},
    {"int32", "Int32"},
    {"int64", "Int64"},
    {"uint8", "UInt8"},
    {"uint16", "UInt16"},
    {"uint32", "UInt32"},
    {"uint64", "UInt64"},
    {"float16", "Float16"},
    {"bfloat16", "BFloat16"},
    {"float32", "Float32"},
    {"float64", "Float64"},
    {"complex64", "Complex64"},
    {"complex128", "Complex128"},
    {"float8_e4m3fn", "Float8E4M3FN"},
    {"float8_e5m2", "Float8E5M2"},
    {"float8_e4m3", "Float8E4M3"},
    {"float8_e3m4", "Float8E3M4"},
    {"float8_e4m3b11fnuz", "Float8E4M3B11FNUZ"},
    {"float8_e4m3fnuz", "Float8E4M3FNUZ"},
    {"float8_e5m2fnuz", "Float8E5M2FNUZ"},
    {"float8_e8m0fnu", "Float8E8M0FNU"},
}};

}  // namespace

const ElementType* FindElementType(std::string_view name) {
  const auto* found =
      std::find_if(kElementTypes.begin(), kElementTypes.end(), [name](const ElementType& t) { return t.name == name; });
  return found == kElementTypes.end() ? nullptr : found;
}

std::string ElementTypeList() {
  return absl::StrJoin(kElementTypes, ", ", [](std::string* out, const ElementType& type) { out->append(type.name); });
}

namespace {

struct AttributeRow {
  AttributeType type;
  std::string_view name;
  std::string_view enumerator;
  int bits = 0;  // for a magnitude
  bool is_signed = false;
  bool is_real = false;
};

constexpr AttributeRow kAttributeTypes[] = {
    {AttributeType::kBool, "bool", "kBool", 1},
    {AttributeType::kInt8, "int8", "kInt8", 7, true},
    {AttributeType::kUInt8, "uint8", "kUInt8", 8},
    {AttributeType::kInt16, "int16", "kInt16", 15, true},
    {AttributeType::kUInt16, "uint16", "kUInt16", 16},
    {AttributeType::kInt32, "int32", "kInt32", 31, true},
    {AttributeType::kUInt32, "uint32", "kUInt32", 32},
    {AttributeType::kInt64, "int64", "kInt64", 63, true},
    {AttributeType::kUInt64, "uint64", "kUInt64", 64},
    {AttributeType::kFloat16, "float16", "kFloat16", 16},
    {AttributeType::kBFloat16, "bfloat16", "kBFloat16", 16},
    {AttributeType::kFloat32, "float32", "kFloat32", 24, true, true},
    {AttributeType::kFloat64, "float64", "kFloat64", 53, true, true},
    {AttributeType::kString, "string", "kString"},
};

const AttributeRow& RowOf(AttributeType type) {
  return *std::find_if(std::begin(kAttributeTypes), std::end(kAttributeTypes),
                       [type](const AttributeRow& row) { return row.type == type; });
}

// "", ":float32" or ":float32[2]"; ".tensormap:float32[64,32]:swizzle_128B" of a tensor map.
std::string ArraysOf(const Parameter& parameter) {
  if (parameter.IsTensorMap()) {
    return StrCat(".tensormap:", parameter.element, "[", parameter.expression, "]",
                  parameter.swizzle > 0 ? StrCat(":swizzle_", parameter.swizzle, "B") : "");
  }
  if (!parameter.IsTyped()) return "";
  return StrCat(":", parameter.element, parameter.rank == kAnyRank ? "" : StrCat("[", parameter.rank, "]"));
}

std::string Token(const Parameter& parameter) {
  if (parameter.kind == ParameterKind::kScratch) return StrCat("scratch:", parameter.expression);
  if (parameter.kind == ParameterKind::kAttribute) {
    return StrCat("attr.", parameter.attribute_name, ":", parameter.TypeName(), parameter.has_default ? "?" : "");
  }
  const auto* found = std::find_if(std::begin(kPlainTokens), std::end(kPlainTokens),
                                   [&](const PlainToken& plain) { return plain.kind == parameter.kind; });
  return StrCat(found->token, ArraysOf(parameter));
}

bool IsArgument(ParameterKind kind) {
  return kind == ParameterKind::kArgument || kind == ParameterKind::kOptionalArgument ||
         kind == ParameterKind::kArguments || kind == ParameterKind::kArgumentToken;
}

bool IsResult(ParameterKind kind) {
  return kind == ParameterKind::kResult || kind == ParameterKind::kResults || kind == ParameterKind::kResultToken;
}

std::vector<ParameterKind> KindsThat(const std::vector<Parameter>& parameters, bool (*fits)(ParameterKind)) {
  std::vector<ParameterKind> kinds;
  for (const Parameter& parameter : parameters) {
    if (fits(parameter.kind)) kinds.push_back(parameter.kind);
  }
  return kinds;
}

}  // namespace

std::string_view AttributeTypeName(AttributeType type) { return RowOf(type).name; }

std::string_view AttributeTypeEnumerator(AttributeType type) { return RowOf(type).enumerator; }

bool ParseAttributeType(std::string_view name, AttributeType& type) {
  for (const AttributeRow& row : kAttributeTypes) {
    if (row.name != name) continue;
    type = row.type;
    return true;
  }
  return false;
}

bool CanBeArray(AttributeType type) { return type != AttributeType::kBool && type != AttributeType::kString; }

bool FitsAlways(AttributeType from, AttributeType to) {
  const AttributeRow& narrow = RowOf(from);
  const AttributeRow& wide = RowOf(to);
  if (wide.is_real && !narrow.is_real) return narrow.bits <= wide.bits;
  return narrow.is_real == wide.is_real && narrow.bits <= wide.bits && (wide.is_signed || !narrow.is_signed);
}

bool Parameter::IsArrays() const { return IsVisible() && (IsArgument(kind) || IsResult(kind)); }

std::string Parameter::TypeName() const {
  if (kind != ParameterKind::kAttribute) return element;
  return StrCat(AttributeTypeName(attribute_type), is_array ? "[]" : "");
}

std::vector<std::string> FunctionSpec::Tokens() const {
  std::vector<std::string> tokens;
  for (const Parameter& parameter : parameters) tokens.push_back(Token(parameter));
  return tokens;
}

std::string FunctionSpec::HandlerSymbol() const { return StrCat("kernix_handler_", name); }

int FunctionSpec::CountOf(ParameterKind kind) const {
  return static_cast<int>(
      std::count_if(parameters.begin(), parameters.end(), [kind](const Parameter& p) { return p.kind == kind; }));
}

bool FunctionSpec::HasTyped() const {
  return std::any_of(parameters.begin(), parameters.end(), [](const Parameter& p) { return p.IsTyped(); });
}

std::vector<ParameterKind> FunctionSpec::Arguments() const { return KindsThat(parameters, IsArgument); }

std::vector<ParameterKind> FunctionSpec::Results() const { return KindsThat(parameters, IsResult); }

int FunctionSpec::DefaultCount() const {
  return static_cast<int>(
      std::count_if(parameters.begin(), parameters.end(), [](const Parameter& p) { return p.has_default; }));
}

}  // namespace kernix::language
