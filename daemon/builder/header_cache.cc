// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/header_cache.h"

#include <cstdint>
#include <optional>

#include "common/base/status_macros.h"

namespace kernix::build {
namespace {

// What a small content takes besides its text.
constexpr uint64_t kOverheadBytes = 256;

}  // namespace

absl::StatusOr<HeaderContents> OwnHeaders::FetchHeaders(const std::vector<Digest>& digests) {
  HeaderContents all;
  std::vector<Digest> missing;
  for (const Digest& digest : digests) {
    if (std::optional<exec::Content> kept = cache_.Find({user_, digest})) {
      all[digest] = *std::move(kept);
    } else {
      missing.push_back(digest);
    }
  }
  if (missing.empty()) return all;
  KERNIX_ASSIGN_OR_RETURN(const HeaderContents sent, asker_.FetchHeaders(missing));
  for (const auto& [digest, content] : sent) {
    cache_.Put({user_, digest}, content, content->size() + kOverheadBytes);
    all[digest] = content;
  }
  return all;
}

}  // namespace kernix::build
