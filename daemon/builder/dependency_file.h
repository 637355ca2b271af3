// SPDX-License-Identifier: Apache-2.0
//
// What a compiler says it has read, in the Makefile syntax of -MD.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kernix::build {

// The prerequisites of the first rule, in order, without doubles.
std::vector<std::string> ParseDependencyFile(std::string_view text);

// Those that lie outside the action's root, which are the absolute ones: commands name their own inputs by relative
// paths. As the compiler wrote them, without doubles, sorted.
std::vector<std::string> HeadersOutsideRoot(std::string_view dependency_file);

}  // namespace kernix::build
