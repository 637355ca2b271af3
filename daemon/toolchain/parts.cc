// SPDX-License-Identifier: Apache-2.0
#include "daemon/toolchain/parts.h"

#include <functional>

#include "common/base/error.h"
#include "common/base/strings.h"
#include "daemon/toolchain/side_by_side.h"

namespace kernix::toolchain {

std::vector<WatchedFile> Parts::States(Env& env) const {
  std::vector<WatchedFile> states;
  for (const Part& part : parts_) states.push_back(StateOf(env, part.path));
  return states;
}

absl::StatusOr<Digest> Parts::Identity(FileDigests& digests, std::string_view domain,
                                       std::vector<WatchedFile>& watched) const {
  struct Found {
    absl::StatusOr<Digest> digest;
    std::vector<WatchedFile> watched;
  };
  std::vector<Found> found(parts_.size());
  std::vector<std::function<void()>> tasks;  // some parts have 80 MB
  for (size_t i = 0; i < parts_.size(); ++i) {
    tasks.emplace_back([&, i] { found[i].digest = digests.Get(parts_[i].path, found[i].watched); });
  }
  RunSideBySide(tasks);
  CanonicalHasher hasher(domain);
  hasher.List("parts", parts_.size());
  for (size_t i = 0; i < parts_.size(); ++i) {
    const absl::StatusOr<Digest>& digest = found[i].digest;
    if (!digest.ok()) {
      return MakeError(v1::ErrorDetail::TOOLCHAIN,
                       StrCat("cannot read a part of the toolchain: ", digest.status().message()));
    }
    watched.insert(watched.end(), found[i].watched.begin(), found[i].watched.end());
    hasher.Field("role", parts_[i].role).Field("content", *digest);
  }
  return hasher.Finish();
}

}  // namespace kernix::toolchain
