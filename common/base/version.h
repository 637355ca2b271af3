// SPDX-License-Identifier: Apache-2.0
//
// The version of this kernix. CMake writes the source of the functions (cmake/BuildId.cmake).
#pragma once

#include <string>

namespace kernix {

// The release, e.g. "0.1.0".
const std::string& Version();

// A digest of the product's sources. It changes with every build of other sources; a client and a
// daemon of one build share it.
const std::string& BuildId();

inline constexpr unsigned kProtocolVersion = 3;

}  // namespace kernix
