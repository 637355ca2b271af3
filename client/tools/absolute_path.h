// SPDX-License-Identifier: Apache-2.0
//
// Makes paths independent of this process's working folder.
#pragma once

#include <string>
#include <string_view>

namespace kernix {

// If `path` is relative, appends it to this process's working folder; otherwise returns it unchanged. Links and ".."
// stay, because only the kernel can resolve them correctly.
std::string AbsolutePath(std::string_view path);

}  // namespace kernix
