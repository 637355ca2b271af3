// SPDX-License-Identifier: Apache-2.0
//
// Commands as a person types them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kernix {

// `word`, quoted if a shell would read it otherwise.
std::string ShellQuote(std::string_view word);

// `argv` quoted for a shell.
std::string ShellCommand(const std::vector<std::string>& argv);

}  // namespace kernix
