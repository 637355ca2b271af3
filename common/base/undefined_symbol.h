// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace kernix {

// What to do about a symbol that neither a linker nor the loader finds.
inline constexpr std::string_view kDefineOrNameLibrary =
    "Define that function in the sources, or name the library that contains it in extra_ldflags";

}  // namespace kernix
