// SPDX-License-Identifier: Apache-2.0
//
// Reads what kernels use of a GPU out of their machine code. A cubin is an ELF file; the sections .nv.info hold
// attributes of the kernels. NVIDIA does not document them. Tests compare what is read with what ptxas says.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kernix/inspection.h"

namespace kernix {

// The kernels of `cubin`, in the order of its symbols. What a kernel's device functions spill counts for the kernel, if
// they were compiled into its section. Returns kInvalidArgument or kDataLoss if `cubin` is none or is damaged.
absl::StatusOr<std::vector<KernelResources>> KernelsInCubin(std::string_view cubin, const std::string& architecture);

}  // namespace kernix
