// SPDX-License-Identifier: Apache-2.0
//
// Which names a module may have.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace kernix {

// INVALID_REQUEST unless `name` can name a module. Lists and logs show the name, and files are named after it.
absl::Status CheckModuleName(std::string_view name);

}  // namespace kernix
