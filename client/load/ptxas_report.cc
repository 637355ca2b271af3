// SPDX-License-Identifier: Apache-2.0
#include "client/load/ptxas_report.h"

#include <cxxabi.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <memory>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/base/strings.h"

namespace kernix {

std::string KernelName(const std::string& symbol) {
  if (!symbol.starts_with("_Z")) return symbol;  // __cxa_demangle() reads "f" as the type float
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status),
                                                         &std::free);
  return name != nullptr ? name.get() : symbol;
}

namespace {

// The text between `before` and the next `end`, or the end of the line.
std::optional<std::string_view> TextAfter(std::string_view line, std::string_view before, char end) {
  const size_t found = line.find(before);
  if (found == std::string_view::npos) return std::nullopt;
  const std::string_view rest = line.substr(found + before.size());
  return rest.substr(0, rest.find(end));
}

// The number at the end of `text`.
uint64_t LastNumber(std::string_view text) {
  size_t begin = text.size();
  while (begin > 0 && std::isdigit(static_cast<unsigned char>(text[begin - 1])) != 0) --begin;
  uint64_t number = 0;
  return absl::SimpleAtoi(ToAbsl(text.substr(begin)), &number) ? number : 0;
}

// A part is "Used 255 registers, used 2 barriers, 1024+0 bytes smem, 380 bytes cmem[0]" or "48 bytes stack frame, ...".
// Each item has a number before or between its words.
void ReadPart(std::string_view part, KernelResources& kernel) {
  const auto read = [part](std::string_view words, auto& value) {
    const size_t found = part.find(words);
    if (found == std::string_view::npos) return;
    const std::string_view before = part.substr(0, found);
    // Older releases print static and dynamic shared memory as "1024+0".
    value = LastNumber(before.substr(0, before.find('+')));
  };
  read(" bytes stack frame", kernel.stack_frame);
  read(" bytes spill stores", kernel.spill_stores);
  read(" bytes spill loads", kernel.spill_loads);
  read(" registers", kernel.registers);
  read(" bytes smem", kernel.shared_memory);
  read(" barriers", kernel.barriers);
  if (const size_t bank = part.find(" bytes cmem["); bank != std::string_view::npos) {
    kernel.constant_memory += LastNumber(part.substr(0, bank));
  }
}

}  // namespace

std::vector<KernelResources> ReadPtxasReport(std::string_view report, const std::string& architecture) {
  std::vector<KernelResources> kernels;
  KernelResources* current = nullptr;
  for (const absl::string_view absl_line : absl::StrSplit(ToAbsl(report), '\n')) {
    const std::string_view line = ToStd(absl_line);
    if (const auto symbol = TextAfter(line, "Compiling entry function '", '\'')) {
      const std::string name(*symbol);
      current = &kernels.emplace_back(
          KernelResources{.name = KernelName(name), .symbol = name, .architecture = architecture});
    } else if (const auto function = TextAfter(line, "Function properties for ", ' ')) {
      // Lines about a device function may appear between the lines about a kernel.
      const auto known = std::find_if(kernels.begin(), kernels.end(),
                                      [&](const KernelResources& kernel) { return kernel.symbol == *function; });
      current = known == kernels.end() ? nullptr : &*known;
    } else if (current != nullptr) {
      for (const absl::string_view part : absl::StrSplit(absl_line, ',')) ReadPart(ToStd(part), *current);
    }
  }
  return kernels;
}

}  // namespace kernix
