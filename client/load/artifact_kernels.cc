// SPDX-License-Identifier: Apache-2.0
#include "client/load/artifact_kernels.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "client/load/cubin.h"
#include "client/load/fat_binary.h"
#include "common/base/elf_image.h"
#include "common/base/status_macros.h"

namespace kernix {
namespace {

// Units follow each other in the file, and each has all architectures.
void SortByArchitecture(std::vector<KernelResources>& kernels) {
  std::vector<std::string> order;
  for (const KernelResources& kernel : kernels) {
    if (std::find(order.begin(), order.end(), kernel.architecture) == order.end()) order.push_back(kernel.architecture);
  }
  const auto place = [&](const KernelResources& kernel) {
    return std::find(order.begin(), order.end(), kernel.architecture) - order.begin();
  };
  std::stable_sort(kernels.begin(), kernels.end(),
                   [&](const KernelResources& a, const KernelResources& b) { return place(a) < place(b); });
}

}  // namespace

absl::StatusOr<std::vector<KernelResources>> KernelsInArtifact(std::string_view artifact) {
  KERNIX_ASSIGN_OR_RETURN(const ElfImage image, ElfImage::Parse(artifact));
  std::vector<KernelResources> kernels;
  const absl::StatusOr<std::string_view> section = image.SectionNamed(".nv_fatbin");
  if (absl::IsNotFound(section.status())) return kernels;
  if (!section.ok()) return section.status();
  KERNIX_ASSIGN_OR_RETURN(const std::vector<MachineCode> codes, MachineCodeIn(*section));
  for (const MachineCode& code : codes) {
    if (code.compressed) return absl::UnimplementedError("the machine code is compressed");
    KERNIX_ASSIGN_OR_RETURN(std::vector<KernelResources> read, KernelsInCubin(code.bytes, code.architecture));
    std::move(read.begin(), read.end(), std::back_inserter(kernels));
  }
  SortByArchitecture(kernels);
  return kernels;
}

}  // namespace kernix
