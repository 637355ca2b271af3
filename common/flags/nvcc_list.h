// SPDX-License-Identifier: Apache-2.0
//
// Splits a list value as nvcc does.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kernix::flags {

// Splits `value` at each of `separators` outside literals and parentheses; drops empty pieces. Outside literals, a
// backslash is removed and makes the next character literal: "X=a\,b" is "X=a,b", and "X=\"a\"" is "X="a"".
std::vector<std::string> SplitNvccList(std::string_view value, std::string_view separators);

}  // namespace kernix::flags
