// SPDX-License-Identifier: Apache-2.0
//
// The language of a source file.
#pragma once

#include <string_view>

#include "kernix/v1/kernix.pb.h"

namespace kernix {

// Determines the language by the suffix: ".cu" is CUDA; ".cpp", ".cc", ".cxx", ".c++" and ".C" are C++. Returns
// LANGUAGE_UNSPECIFIED for other names.
v1::Language LanguageOfFile(std::string_view path);

}  // namespace kernix
