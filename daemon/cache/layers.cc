// SPDX-License-Identifier: Apache-2.0
#include "daemon/cache/layers.h"

#include <unistd.h>

#include <optional>
#include <utility>

#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/file_identity.h"
#include "common/os/private_directory.h"
#include "daemon/cache/index.h"
#include "daemon/cache/store_folder.h"

namespace kernix::cache {
namespace {

absl::Status Unreadable(const std::string& directory, const absl::Status& why) {
  return MakeError(v1::ErrorDetail::RESOURCE,
                   StrCat("the store ", directory, ", which is only read, cannot be used (", why.message(),
                          "): leave it out of KERNIX_CACHE_DIR or store_directory, or make it readable, for example "
                          "with `chmod -R go+rX ",
                          directory, "` where it was made"));
}

absl::Status CopyFilesOfIndex(Env& env, const StorePaths& from, const std::string& to) {
  for (const char* suffix : {"", "-wal"}) {
    const absl::StatusOr<std::string> content = env.ReadFile(from.index + suffix);
    const bool has_no_log = *suffix != '\0' && absl::IsNotFound(content.status());
    if (has_no_log) {
      env.RemoveFile(to + suffix).IgnoreError();  // of an earlier try
      return absl::OkStatus();
    }
    KERNIX_RETURN_IF_ERROR(content.status());
    KERNIX_RETURN_IF_ERROR(env.WriteFile(to + suffix, *content, 0600));
  }
  return absl::OkStatus();
}

// A kernixd that has the store open may write both files meanwhile.
absl::Status CopyIndex(Env& env, const StorePaths& from, const std::string& to) {
  constexpr int kMostTries = 10;
  const auto states = [&] { return std::pair(StateOf(env, from.index), StateOf(env, from.index + "-wal")); };
  for (int i = 0; i < kMostTries; ++i) {
    const auto before = states();
    KERNIX_RETURN_IF_ERROR(CopyFilesOfIndex(env, from, to));
    if (states() == before) return absl::OkStatus();
  }
  return absl::UnavailableError("somebody writes to it all the time");
}

}  // namespace

absl::StatusOr<Layer> OpenLayer(Env& env, const std::string& directory, const std::string& scratch) {
  const StorePaths paths(directory);
  absl::Status status = GuardedRealPath(env, directory, {::geteuid()}).status();
  if (status.ok()) status = CheckGuardedDirectory(env, paths.blobs, ::geteuid());
  if (status.ok()) status = GuardedRealPath(env, paths.index, {::geteuid()}).status();
  if (status.ok()) status = CopyIndex(env, paths, scratch);
  if (!status.ok()) return Unreadable(directory, status);
  absl::StatusOr<std::unique_ptr<Index>> index = Index::Open(scratch);
  if (!index.ok()) return Unreadable(directory, index.status());
  return Layer{*std::move(index), std::make_unique<BlobFolder>(env, paths.blobs)};
}

}  // namespace kernix::cache
