// SPDX-License-Identifier: Apache-2.0
//
// Words and flags: the parts of a command's word, and nvcc's flags for the host compiler.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "common/flags/flag_table.h"

namespace kernix::flags {

// Splits a list value as nvcc does.

// Splits `value` at each of `separators` outside literals and parentheses; drops empty pieces. Outside literals, a
// backslash is removed and makes the next character literal: "X=a\,b" is "X=a,b", and "X=\"a\"" is "X="a"".
std::vector<std::string> SplitNvccList(std::string_view value, std::string_view separators);

// nvcc's flags for the host compiler.

// When it compiles: what -Xcompiler holds.
std::vector<std::string> HostWordsAtCompile(const std::vector<std::string>& nvcc_words);

// When it links: all of them, each in the spelling of the host compiler. "-library-path /x" is "-L/x", "-Xlinker=a,b"
// is "-Wl,a,b", and what -Xcompiler holds stands by itself. -cudart is left out, since the host compiler has nothing
// like it. A flag that lacks its value stays as it is.
std::vector<std::string> HostWordsAtLink(const std::vector<std::string>& nvcc_words);

// Each flag is an element of its list. Code that was written for a shell has several in one string, and a compiler
// would take the second one for a part of the first one's value, perhaps in silence: "-DA=8 -DB=9".

// INVALID_REQUEST if one of the flag's words holds another flag, or the flag's value, behind a blank outside quotes and
// parentheses. A value that is a list of another tool's flags may hold several.
absl::Status CheckIsOneFlag(const Table& table, const Flag& flag);

}  // namespace kernix::flags
