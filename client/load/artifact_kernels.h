// SPDX-License-Identifier: Apache-2.0
//
// What the kernels in an artifact use of a GPU, read from its machine code: fat binaries, which nvcc embeds in a
// library, hold a cubin for each unit and architecture. NVIDIA documents neither format. Tests compare what is read
// with what ptxas says.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kernix/inspection.h"

namespace kernix {

// Reads the fat binaries that nvcc embeds in a library: for each unit the machine code of each architecture, and PTX.
// NVIDIA does not document the format. The reader checks the bounds of every read, because a compiler may have produced
// the file from a hostile user's source.

// The machine code of one unit for one architecture.
struct MachineCode {
  std::string architecture;  // "sm_90", "sm_90a"
  std::string_view bytes;    // a cubin, unless it is compressed
  bool compressed = false;
};

// The machine code in `section`, the content of a library's section .nv_fatbin, in file order. Skips PTX. Returns
// kDataLoss if an entry does not end where it should.
absl::StatusOr<std::vector<MachineCode>> MachineCodeIn(std::string_view section);

// Reads what kernels use of a GPU out of their machine code. A cubin is an ELF file; the sections .nv.info hold
// attributes of the kernels. NVIDIA does not document them. Tests compare what is read with what ptxas says.

// The kernels of `cubin`, in the order of its symbols. What a kernel's device functions spill counts for the kernel, if
// they were compiled into its section. Returns kInvalidArgument or kDataLoss if `cubin` is none or is damaged.
absl::StatusOr<std::vector<KernelResources>> KernelsInCubin(std::string_view cubin, const std::string& architecture);

// What the kernels in the machine code of `artifact`, an ELF shared object, use of a GPU. By architecture, in the order
// of the file; none if there is no machine code. Returns kUnimplemented if the machine code is compressed, and
// kInvalidArgument or kDataLoss if `artifact` is damaged.
absl::StatusOr<std::vector<KernelResources>> KernelsInArtifact(std::string_view artifact);

}  // namespace kernix
