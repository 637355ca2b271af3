// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace kernix {

// The C++ name of a kernel's symbol, "add(float const*, float*, int)". A symbol that is not mangled stays as it is.
std::string KernelName(const std::string& symbol);

}  // namespace kernix
