// SPDX-License-Identifier: Apache-2.0
#include "daemon/toolchain/parts.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "common/base/error.h"
#include "common/base/strings.h"
#include "common/os/file_identity.h"
#include "daemon/toolchain/side_by_side.h"

namespace kernix::toolchain {
namespace {

absl::Status CannotRead(const absl::Status& status) {
  return MakeError(v1::ErrorDetail::TOOLCHAIN, StrCat("cannot read a part of the toolchain: ", status.message()));
}

}  // namespace

absl::StatusOr<Digest> Parts::Identity(Env& env, FileDigests& digests, std::string_view domain,
                                       std::vector<WatchedFile>& watched,
                                       const std::function<void()>& before_reading) const {
  std::vector<WatchedFile> files;
  for (const Part& part : parts_) {
    const absl::Status seen = Watch(env, part.path, files);
    if (!seen.ok()) return CannotRead(seen);
  }
  watched.insert(watched.end(), files.begin(), files.end());
  const bool all_known =
      std::all_of(files.begin(), files.end(), [&](const WatchedFile& file) { return digests.Knows(file); });
  if (!all_known) before_reading();
  std::vector<absl::StatusOr<Digest>> found(files.size());
  std::vector<std::function<void()>> tasks;  // some parts have 80 MB
  for (size_t i = 0; i < files.size(); ++i) {
    tasks.emplace_back([&, i] { found[i] = digests.Get(files[i]); });
  }
  RunSideBySide(tasks);
  CanonicalHasher hasher(domain);
  hasher.List("parts", parts_.size());
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (!found[i].ok()) return CannotRead(found[i].status());
    hasher.Field("role", parts_[i].role).Field("content", *found[i]);
  }
  return hasher.Finish();
}

}  // namespace kernix::toolchain
