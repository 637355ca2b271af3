// SPDX-License-Identifier: Apache-2.0
//
// What kernels use of a GPU: read from the machine code of an artifact, or from a report of ptxas; and the warning
// about kernels that spill.
//
// nvcc embeds fat binaries in a library: for each unit, PTX and the machine code of each architecture. That is a cubin,
// an ELF file whose sections .nv.info hold attributes of the kernels. NVIDIA documents neither format. Tests compare
// the figures with ptxas's report. The bounds of every read are checked, because a compiler may have produced the file
// from a hostile user's source.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "client/bundle/gpu_targets.h"
#include "kernix/inspection.h"

namespace kernix {

// The machine code of one unit for one architecture.
struct MachineCode {
  std::string architecture;  // "sm_90", "sm_90a"
  std::string_view bytes;    // a cubin, unless it is compressed
  bool compressed = false;
};

// The machine code in `section`, the content of a library's section .nv_fatbin, in file order. Skips PTX. Returns
// kDataLoss if an entry does not end where it should.
absl::StatusOr<std::vector<MachineCode>> MachineCodeIn(std::string_view section);

// The targets of the GPU code in `artifact`, each once, in file order. Errors as KernelsInArtifact().
absl::StatusOr<GpuTargets> TargetsInArtifact(std::string_view artifact);

// A kernel's spills: bytes for each thread, summed over the instructions.
struct Spills {
  uint64_t stored = 0;
  uint64_t loaded = 0;
};

// `code` is the kernel's machine code, `marks` the content of its attribute EIATTR_ANNOTATIONS. Nullopt if the marks
// are of a kind that is not known, or do not fit the code.
std::optional<Spills> SpillsOf(std::string_view code, std::string_view marks);

// The GPU resources of the kernels in the machine code of `artifact`, an ELF shared object. By architecture, in the
// order of the file; none if there is no machine code. Returns kUnimplemented if the machine code is compressed, and
// kInvalidArgument or kDataLoss if `artifact` is damaged.
absl::StatusOr<std::vector<KernelResources>> KernelsInArtifact(std::string_view artifact);

// The kernels in `report`, which `ptxas -v` has printed, in its order. Functions that kernels call are omitted. Accepts
// any text; values that the report does not contain are 0, or nullopt where that is possible.
std::vector<KernelResources> ReadPtxasReport(std::string_view report, const std::string& architecture);

// The text of the warning register-spills about the module `name`, or nullopt if none of its kernels is known to spill.
std::optional<std::string> SpillWarning(const std::string& name, const std::vector<KernelResources>& kernels);

}  // namespace kernix
