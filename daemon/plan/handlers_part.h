// SPDX-License-Identifier: Apache-2.0
//
// The handlers' part as it comes with kernixd: compiled when kernixd was built, by the compiler of kernixd.
#pragma once

#include <string_view>

namespace kernix::build {

// An object for any x86-64. It needs names only that every GCC and Clang of the last ten years brings.
std::string_view HandlersPart();

}  // namespace kernix::build
