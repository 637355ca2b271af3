// SPDX-License-Identifier: Apache-2.0
//
// What cmake/BuildId.cmake writes at each build. Others use version.h.
#pragma once

namespace kernix {

extern const char kBuildVersion[];
extern const char kBuildId[];

}  // namespace kernix
