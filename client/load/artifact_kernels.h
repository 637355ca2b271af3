// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kernix/inspection.h"

namespace kernix {

// What the kernels in the machine code of `artifact`, an ELF shared object, use of a GPU. By architecture, in the order
// of the file; none if there is no machine code. Returns kUnimplemented if the machine code is compressed, and
// kInvalidArgument or kDataLoss if `artifact` is damaged.
absl::StatusOr<std::vector<KernelResources>> KernelsInArtifact(std::string_view artifact);

}  // namespace kernix
