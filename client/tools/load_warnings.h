// SPDX-License-Identifier: Apache-2.0
//
// Which of a load's warnings the user wants to see: $KERNIX_WARNINGS is a list of no-<name>, separated by commas, or
// "none".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/load_warning.h"
#include "common/base/paths.h"

namespace kernix {

struct LoadWarning {
  std::string_view name;  // of kernix::warning
  std::string text;
};

// The text of a warning with how to switch it off, or nullopt if the user has done so.
std::optional<std::string> ShownWarning(const GetEnv& get_env, std::string_view name, std::string_view text);

// What is wrong with $KERNIX_WARNINGS.
std::vector<std::string> WarningsAboutSwitches(const GetEnv& get_env);

}  // namespace kernix
