// SPDX-License-Identifier: Apache-2.0
#include "client/load/spill_warning.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "common/base/strings.h"

namespace kernix {
namespace {

constexpr size_t kMostNamed = 3;

uint64_t SpilledBytes(const KernelResources& kernel) {
  return kernel.spill_stores.value_or(0) + kernel.spill_loads.value_or(0);
}

std::string Described(const KernelResources& kernel) {
  return StrCat(kernel.name, " on ", kernel.architecture, " (", kernel.spill_stores.value_or(0), " bytes stored, ",
                kernel.spill_loads.value_or(0), " loaded, ", kernel.registers, " registers)");
}

}  // namespace

std::optional<std::string> SpillWarning(const std::string& name, const std::vector<KernelResources>& kernels) {
  std::vector<KernelResources> spilling;
  std::copy_if(kernels.begin(), kernels.end(), std::back_inserter(spilling),
               [](const KernelResources& kernel) { return SpilledBytes(kernel) > 0; });
  if (spilling.empty()) return std::nullopt;
  std::stable_sort(spilling.begin(), spilling.end(), [](const KernelResources& a, const KernelResources& b) {
    return SpilledBytes(a) > SpilledBytes(b);
  });
  std::vector<std::string> named;
  for (size_t i = 0; i < std::min(kMostNamed, spilling.size()); ++i) named.push_back(Described(spilling[i]));
  return StrCat("module \"", name, "\": each thread spills registers to local memory, which is slow, in ",
                absl::StrJoin(named, ", "),
                spilling.size() > kMostNamed ? StrCat(" and ", spilling.size() - kMostNamed, " more like this") : "",
                ". Keep fewer values at once, or let the kernel have more registers (__launch_bounds__, "
                "-maxrregcount).");
}

}  // namespace kernix
