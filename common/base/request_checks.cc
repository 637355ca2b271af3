// SPDX-License-Identifier: Apache-2.0
#include "common/base/request_checks.h"

#include <algorithm>
#include <string>

#include "common/base/error.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"

namespace kernix {
namespace {

constexpr size_t kMaxBytes = 200;

bool IsUnusable(unsigned char c) { return c < 0x20 || c == 0x7f || c == '/'; }

}  // namespace

absl::Status CheckModuleName(std::string_view name) {
  const bool plain = std::none_of(name.begin(), name.end(), IsUnusable);
  if (!name.empty() && plain && name != "." && name != ".." && name.size() <= kMaxBytes && IsValidUtf8(name)) {
    return absl::OkStatus();
  }
  constexpr size_t kMostShown = 60;
  const size_t shown = std::min(name.find('\n'), kMostShown);
  return MakeError(
      v1::ErrorDetail::INVALID_REQUEST,
      StrCat("\"", ToValidUtf8(std::string(name.substr(0, shown))), shown < name.size() ? "..." : "",
             "\" cannot name a module: use 1 to ", kMaxBytes, " bytes of UTF-8 without '/' and control characters",
             name.find('\n') == std::string_view::npos ? "" : ". Are the name and the source swapped?"));
}

absl::Status CheckOptimizationLevel(int64_t level) {
  if (level >= 0 && level <= kMaxOptimizationLevel) return absl::OkStatus();
  return MakeError(v1::ErrorDetail::INVALID_REQUEST, StrCat("optimization_level ", level, " is not one of 0, 1, 2, 3"));
}

}  // namespace kernix
