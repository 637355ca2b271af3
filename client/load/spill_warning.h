// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernix/inspection.h"

namespace kernix {

// The text of the warning register-spills about the module `name`, or nullopt if none of its kernels is known to spill.
std::optional<std::string> SpillWarning(const std::string& name, const std::vector<KernelResources>& kernels);

}  // namespace kernix
