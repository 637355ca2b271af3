// SPDX-License-Identifier: Apache-2.0
//
// What client and daemon both know of a load's parameters: the language of a source file, and which names a module may
// have.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix {

// The language of a source file.

// Determines the language by the suffix: ".cu" is CUDA; ".cpp", ".cc", ".cxx", ".c++" and ".C" are C++. Returns
// LANGUAGE_UNSPECIFIED for other names.
v1::Language LanguageOfFile(std::string_view path);

// INVALID_REQUEST unless `name` can name a module. Lists and logs show the name, and files are named after it.
absl::Status CheckModuleName(std::string_view name);

}  // namespace kernix
