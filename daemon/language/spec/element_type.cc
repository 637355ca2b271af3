// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/spec/element_type.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_join.h"

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

}  // namespace kernix::language
