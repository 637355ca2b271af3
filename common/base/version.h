// SPDX-License-Identifier: Apache-2.0
//
// Which kernix this is.
#pragma once

#include <string>

namespace kernix {

// Release, e.g. "0.1.0".
const std::string& Version();

// Changes with every build of the product: a digest of the sources that it was made from, set by CMake. Client and
// daemon of one build share it.
const std::string& BuildId();

inline constexpr unsigned kProtocolVersion = 2;

}  // namespace kernix
