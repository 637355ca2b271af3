// SPDX-License-Identifier: Apache-2.0
#include "client/kernixctl/kernel_table.h"

#include <cmath>
#include <cstdint>
#include <optional>

#include "client/kernixctl/format.h"
#include "common/base/json.h"
#include "common/base/strings.h"

namespace kernix::ctl {
namespace {

std::string NumberOr(const std::optional<uint64_t>& number, const char* unknown) {
  return number ? StrCat(*number) : unknown;
}

// With blocks of this many threads, a usual number.
constexpr uint64_t kThreads = 256;

// In percent.
std::string OccupancyOr(const KernelResources& kernel, const char* unknown) {
  const std::optional<double> occupancy = Occupancy(kernel, kThreads);
  return occupancy ? StrCat(std::lround(100 * *occupancy)) : unknown;
}

std::string KernelJson(const KernelResources& kernel) {
  return JsonObject()
      .Text("name", kernel.name)
      .Text("symbol", kernel.symbol)
      .Text("architecture", kernel.architecture)
      .Number("registers", kernel.registers)
      .Number("shared_memory", kernel.shared_memory)
      .Number("stack_frame", kernel.stack_frame)
      .Json("spill_stores", NumberOr(kernel.spill_stores, "null"))
      .Json("spill_loads", NumberOr(kernel.spill_loads, "null"))
      .Number("constant_memory", kernel.constant_memory)
      .Number("barriers", kernel.barriers)
      .Json(StrCat("occupancy_percent_", kThreads, "_threads"), OccupancyOr(kernel, "null"))
      .Str();
}

}  // namespace

std::string KernelTable(const std::vector<KernelResources>& kernels) {
  std::vector<std::vector<std::string>> rows = {{"KERNEL", "ARCHITECTURE", "REGISTERS", "SHARED", "STACK",
                                                 "SPILL STORES", "SPILL LOADS", "CONSTANT", "BARRIERS",
                                                 StrCat("OCCUPANCY % (", kThreads, " THREADS)")}};
  for (const KernelResources& kernel : kernels) {
    rows.push_back({kernel.name, kernel.architecture, StrCat(kernel.registers), StrCat(kernel.shared_memory),
                    StrCat(kernel.stack_frame), NumberOr(kernel.spill_stores, "?"), NumberOr(kernel.spill_loads, "?"),
                    StrCat(kernel.constant_memory), StrCat(kernel.barriers), OccupancyOr(kernel, "?")});
  }
  return FormatTable(rows);
}

std::string KernelsJson(const std::vector<KernelResources>& kernels) {
  std::vector<std::string> elements;
  for (const KernelResources& kernel : kernels) elements.push_back(KernelJson(kernel));
  return JsonArray(elements);
}

}  // namespace kernix::ctl
