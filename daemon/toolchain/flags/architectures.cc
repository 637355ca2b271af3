// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "daemon/toolchain/flags/flags.h"

namespace kernix::toolchain {
namespace {

// A number and a letter: "a" for exactly this GPU, "f" for its family, empty for this GPU and newer ones. Pairs sort in
// the order that CheckArchitectures() promises.
using Architecture = std::pair<int, std::string>;

std::string Name(const Architecture& architecture) { return StrCat("sm_", architecture.first, architecture.second); }

std::optional<Architecture> Parse(std::string text) {
  for (const std::string_view prefix : {"sm_", "compute_"}) {
    if (text.starts_with(prefix)) text.erase(0, prefix.size());
  }
  Architecture result;
  if (text.ends_with('a') || text.ends_with('f')) {
    result.second = text.back();
    text.pop_back();
  }
  const size_t dot = text.find('.');
  const bool dotted = dot != std::string::npos && dot + 2 == text.size();  // "8.6", "12.0"
  if (dotted) text.erase(dot, 1);
  const bool digits = text.size() >= 2 && text.size() <= 4 &&
                      std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  if (!digits || !absl::SimpleAtoi(text, &result.first)) return std::nullopt;
  return result;
}

std::string Known(const CudaToolkit& cuda) {
  return absl::StrJoin(cuda.architectures, ", ", [](std::string* out, int number) { StrAppend(out, "sm_", number); });
}

absl::Status CheckKnown(const CudaToolkit& cuda, const Architecture& architecture) {
  const std::vector<int>& known = cuda.architectures;
  if (std::find(known.begin(), known.end(), architecture.first) != known.end()) return absl::OkStatus();
  return MakeError(v1::ErrorDetail::TOOLCHAIN,
                   StrCat("nvcc ", cuda.version, " cannot compile for ", Name(architecture), ". It supports ",
                          Known(cuda), ". Choose one of these with compute_capability, or use another CUDA toolkit"));
}

// What nvcc's words stand for; empty for any other text.
std::set<Architecture> All(const CudaToolkit& cuda, std::string_view text) {
  std::set<Architecture> all;
  if (text != "all" && text != "all-major") return all;
  for (const int number : cuda.architectures) {
    const bool is_major = number % 10 == 0 || number == cuda.architectures.front();
    if (text == "all" || is_major) all.insert({number, ""});
  }
  return all;
}

// For the GPU of this number alone: with wgmma, TMA multicast or FP4, which the plain target lacks since 9.0.
void MakeSpecific(const CudaToolkit& cuda, Architecture& architecture) {
  constexpr int kFirstSpecific = 90, kFirstWithFamily = 120;
  const bool has_families = cuda.major_version > 12 || (cuda.major_version == 12 && cuda.minor_version >= 9);
  if (architecture.first < kFirstSpecific || !architecture.second.empty()) return;
  architecture.second.assign(1, architecture.first >= kFirstWithFamily && has_families ? 'f' : 'a');
}

}  // namespace

absl::StatusOr<std::vector<std::string>> CheckArchitectures(const CudaToolkit& cuda,
                                                            const std::vector<std::string>& architectures,
                                                            bool of_gpu) {
  std::set<Architecture> checked;
  for (const std::string& text : architectures) {
    if (const std::set<Architecture> all = All(cuda, text); !all.empty()) {
      checked.insert(all.begin(), all.end());
      continue;
    }
    std::optional<Architecture> architecture = Parse(text);
    if (!architecture) {
      return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                       StrCat("\"", text, "\" is not a compute capability: write \"sm_86\" or \"8.6\""));
    }
    KERNIX_RETURN_IF_ERROR(CheckKnown(cuda, *architecture));
    if (of_gpu) MakeSpecific(cuda, *architecture);
    checked.insert(*architecture);
  }
  if (checked.empty()) {
    return MakeError(v1::ErrorDetail::INVALID_REQUEST, "no compute capability is given: write \"sm_86\" or \"8.6\"");
  }
  std::vector<std::string> names;
  names.reserve(checked.size());
  for (const Architecture& architecture : checked) names.push_back(Name(architecture));
  return names;
}

}  // namespace kernix::toolchain
