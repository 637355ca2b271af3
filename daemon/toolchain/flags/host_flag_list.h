// SPDX-License-Identifier: Apache-2.0
//
// The flags of g++ and clang++ that a shared kernixd lets pass. Internal to CheckFlags().
#pragma once

#include <string_view>

namespace kernix::toolchain {

// Whether `flag`, value included, is one of those that -f, -m, -W, -g, -O and -std begin.
bool IsListedHostFlag(std::string_view flag);

// The value of --param: "name=number".
bool IsParameter(std::string_view value);

// A word of -Wa,...: "-mNAME", "--noexecstack", ....
bool IsListedAssemblerWord(std::string_view word);

}  // namespace kernix::toolchain
