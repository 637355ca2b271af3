// SPDX-License-Identifier: Apache-2.0
//
// Parses the resource report of `ptxas -v`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernix/inspection.h"

namespace kernix {

// The kernels in `report`, in its order. Functions that kernels call are omitted. Accepts any text; values that the
// report does not contain are 0, or nullopt where that is possible.
std::vector<KernelResources> ReadPtxasReport(std::string_view report, const std::string& architecture);

}  // namespace kernix
