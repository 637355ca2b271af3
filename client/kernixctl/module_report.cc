// SPDX-License-Identifier: Apache-2.0
#include "client/kernixctl/module_report.h"

#include <cmath>
#include <cstdint>
#include <optional>

#include "absl/strings/str_join.h"
#include "client/kernixctl/batch.h"
#include "client/kernixctl/format.h"
#include "common/base/json.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "kernix/inspection.h"

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

std::string FunctionsJson(const Module& module) {
  return JsonOfAll(module.functions(), [](const FunctionInfo& function) {
    return JsonObject().Text("name", function.name).Text("arg_spec", absl::StrJoin(function.tokens, " ")).Str();
  });
}

absl::StatusOr<std::string> TextOf(const Module& module, const std::string& printable) {
  if (printable == "ptx") return Ptx(module);
  if (printable == "sass") return Sass(module);
  if (printable == "source") return GeneratedSource(module);
  KERNIX_ASSIGN_OR_RETURN(const std::vector<KernelResources> kernels, Resources(module));
  return KernelTable(kernels);
}

std::string HowItCame(const Module& module) {
  if (module.cache_hit()) return InWords(module.origin());
  return StrCat("built in ", module.build_ms(), " ms: ", module.miss_reason());
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

std::string KernelsJson(const std::vector<KernelResources>& kernels) { return JsonOfAll(kernels, KernelJson); }

const std::vector<std::string> kPrintable = {"ptx", "sass", "source", "resources"};

bool NeedsKeep(const std::string& printable) { return printable == "ptx" || printable == "sass"; }

bool NeedsCuda(const std::string& printable) { return NeedsKeep(printable) || printable == "resources"; }

std::string SummaryLine(const CompiledFiles& compiled) {
  const Module& module = compiled.module;
  std::vector<std::string> names;
  for (const FunctionInfo& function : module.functions()) names.push_back(function.name);
  return Printable(StrCat(compiled.files.size() == 1 ? compiled.files[0] : module.name(), ": ",
                          absl::StrJoin(names, ", "), " (", HowItCame(module), ") -> ", compiled.path));
}

std::string SummaryJson(const CompiledFiles& compiled) {
  const Module& module = compiled.module;
  JsonObject object;
  object.Text("file", compiled.files[0])
      .Text("key", module.key())
      .Boolean("cache_hit", module.cache_hit())
      .Boolean("from_upstream", module.origin() == Origin::kUpstream)
      .Number("build_ms", module.build_ms())
      .Text("miss_reason", module.miss_reason())
      .Text("path", compiled.path)
      .Json("functions", FunctionsJson(module))
      .Text("name", module.name())
      .Json("files", JsonStrings(compiled.files));
  if (const auto kernels = Resources(module); kernels.ok()) object.Json("kernels", KernelsJson(*kernels));
  return object.Str();
}

absl::StatusOr<std::string> TextToPrint(const Module& module, const std::string& printable) {
  KERNIX_ASSIGN_OR_RETURN(std::string text, TextOf(module, printable));
  if (!text.ends_with('\n')) text += '\n';
  return text;
}

}  // namespace kernix::ctl
