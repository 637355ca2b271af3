// SPDX-License-Identifier: Apache-2.0
//
// What `ptxas -v` says about the resources that kernels use, as data.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernix/inspection.h"

namespace kernix {

// The kernels that `report` tells of, in its order. Functions that kernels call, rather than kernels, are left out.
// Any text is safe; what it does not say is 0.
std::vector<KernelResources> ReadPtxasReport(std::string_view report, const std::string& architecture);

}  // namespace kernix
