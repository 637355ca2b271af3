// SPDX-License-Identifier: Apache-2.0
//
// What kernels use of a GPU, as the report of `ptxas -v` says it, and how kernels are named.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernix/inspection.h"

namespace kernix {

// The C++ name of a kernel's symbol, "add(float const*, float*, int)". A symbol that is not mangled stays as it is.
std::string KernelName(const std::string& symbol);

// The kernels in `report`, in its order. Functions that kernels call are omitted. Accepts any text; values that the
// report does not contain are 0, or nullopt where that is possible.
std::vector<KernelResources> ReadPtxasReport(std::string_view report, const std::string& architecture);

}  // namespace kernix
