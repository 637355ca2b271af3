// SPDX-License-Identifier: Apache-2.0
//
// The declarations behind the file that cmake/BuildId.cmake writes in each build. Other code uses version.h.
#pragma once

namespace kernix {

extern const char kBuildVersion[];
extern const char kBuildId[];

}  // namespace kernix
