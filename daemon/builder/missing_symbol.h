// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace kernix::build {

// What to do about `error`, a linker's message, if it names a missing symbol of a well-known library; otherwise empty.
std::string AdviceForMissingSymbol(std::string_view error);

}  // namespace kernix::build
