// SPDX-License-Identifier: Apache-2.0
//
// Paths as the user wrote them, made independent of this process's working folder.
#pragma once

#include <string>
#include <string_view>

namespace kernix {

// `path` behind the working folder of this process when it is relative; else as it is. Links and ".." stay: only the
// kernel knows what they mean.
std::string AbsolutePath(std::string_view path);

}  // namespace kernix
