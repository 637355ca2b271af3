// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "daemon/base/error.h"
#include "daemon/base/status_macros.h"
#include "daemon/base/strings.h"
#include "daemon/toolchain/flags.h"

namespace kernix::toolchain {
namespace {

// Number first: the order of CheckArchitectures().
struct Architecture {
  int number = 0;
  std::string letter;  // "a": only this very GPU, "f": its family, none: this and newer

  std::string Name() const { return StrCat("sm_", number, letter); }
  auto operator<=>(const Architecture&) const = default;
};

std::optional<Architecture> Parse(std::string text) {
  for (const std::string_view prefix : {"sm_", "compute_"}) {
    if (text.starts_with(prefix)) text.erase(0, prefix.size());
  }
  Architecture result;
  if (text.ends_with('a') || text.ends_with('f')) {
    result.letter = text.back();
    text.pop_back();
  }
  const size_t dot = text.find('.');
  const bool dotted = dot != std::string::npos && dot + 2 == text.size();  // "8.6", "12.0"
  if (dotted) text.erase(dot, 1);
  const bool digits = text.size() >= 2 && text.size() <= 4 &&
                      std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  if (!digits || !absl::SimpleAtoi(text, &result.number)) return std::nullopt;
  return result;
}

std::string Known(const CudaToolkit& cuda) {
  return absl::StrJoin(cuda.architectures, ", ", [](std::string* out, int number) { StrAppend(out, "sm_", number); });
}

absl::Status CheckKnown(const CudaToolkit& cuda, const Architecture& architecture) {
  const std::vector<int>& known = cuda.architectures;
  if (std::find(known.begin(), known.end(), architecture.number) != known.end()) return absl::OkStatus();
  return MakeError(v1::ErrorDetail::TOOLCHAIN,
                   StrCat("nvcc ", cuda.version, " cannot compile for ", architecture.Name(), ". It can for ",
                          Known(cuda), ". Choose one of these with compute_capability, or another CUDA toolkit"));
}

}  // namespace

absl::StatusOr<std::vector<std::string>> CheckArchitectures(const CudaToolkit& cuda,
                                                            const std::vector<std::string>& architectures) {
  std::vector<Architecture> checked;
  for (const std::string& text : architectures) {
    const std::optional<Architecture> architecture = Parse(text);
    if (!architecture) {
      return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                       StrCat("\"", text, "\" is no compute capability: write it as \"sm_86\" or \"8.6\""));
    }
    KERNIX_RETURN_IF_ERROR(CheckKnown(cuda, *architecture));
    checked.push_back(*architecture);
  }
  if (checked.empty()) {
    return MakeError(v1::ErrorDetail::INVALID_REQUEST, "no compute capability is given: write \"sm_86\" or \"8.6\"");
  }
  std::sort(checked.begin(), checked.end());
  checked.erase(std::unique(checked.begin(), checked.end()), checked.end());
  std::vector<std::string> names;
  for (const Architecture& architecture : checked) names.push_back(architecture.Name());
  return names;
}

}  // namespace kernix::toolchain
