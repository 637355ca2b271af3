// SPDX-License-Identifier: Apache-2.0
//
// What kernels use of a GPU, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "kernix/inspection.h"

namespace kernix::ctl {

// A row for each kernel and architecture, below a line of titles. "?" stands for what is not known.
std::string KernelTable(const std::vector<KernelResources>& kernels);

// A JSON array with an object for each of them; null stands for what is not known.
std::string KernelsJson(const std::vector<KernelResources>& kernels);

}  // namespace kernix::ctl
