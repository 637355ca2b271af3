// SPDX-License-Identifier: Apache-2.0
//
// How nvcc reads a value that is a list.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kernix::toolchain {

// `value`, cut at each of `separators` that stands in no literal and no parentheses; empty pieces are left out. Outside
// of literals a backslash takes what follows for what it is, and goes: "X=a\,b" is "X=a,b", and "X=\"a\"" "X="a"".
std::vector<std::string> SplitNvccList(std::string_view value, std::string_view separators);

}  // namespace kernix::toolchain
