// SPDX-License-Identifier: Apache-2.0
//
// Element types of arrays, by the names that NumPy (with ml_dtypes) gives them.
#pragma once

#include <string>
#include <string_view>

namespace kernix::language {

struct ElementType {
  std::string_view name;   // "float32"
  std::string_view dtype;  // the enumerator of BE::DType: "Float32"
};

// nullptr if `name` is no element type, or one of less than a byte, for which there is no C++ type.
const ElementType* FindElementType(std::string_view name);

// The names of all element types, separated by commas.
std::string ElementTypeList();

}  // namespace kernix::language
