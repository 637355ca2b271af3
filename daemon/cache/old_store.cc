// SPDX-License-Identifier: Apache-2.0
#include "daemon/cache/old_store.h"

#include <vector>

#include "common/base/digest.h"
#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace kernix::cache {
namespace {

// An earlier attempt may have left complete or partial copies.
absl::Status RemoveCopies(Env& env, const StorePaths& paths) {
  KERNIX_ASSIGN_OR_RETURN(const std::vector<std::string> names, env.ListDirectory(paths.private_directory));
  for (const std::string& name : names) {
    const std::string path = JoinPath(paths.private_directory, name);
    if (path.starts_with(paths.index)) KERNIX_RETURN_IF_ERROR(env.RemoveTree(path));
  }
  return absl::OkStatus();
}

// SQLite rebuilds the shared memory file from the log.
absl::Status CopyIndex(Env& env, const OldStorePaths& old, const StorePaths& paths) {
  KERNIX_RETURN_IF_ERROR(RemoveCopies(env, paths));
  for (const char* suffix : {"", "-wal"}) {
    const absl::StatusOr<std::string> content = env.ReadFile(StrCat(old.index, suffix));
    if (absl::IsNotFound(content.status())) continue;
    KERNIX_RETURN_IF_ERROR(content.status());
    KERNIX_RETURN_IF_ERROR(env.WriteFileDurably(StrCat(paths.index, suffix), *content, 0600));
  }
  return absl::OkStatus();
}

absl::Status MoveArtifacts(Env& env, const OldStorePaths& old, const StorePaths& paths) {
  const absl::StatusOr<std::vector<std::string>> names = env.ListDirectory(old.blobs);
  if (absl::IsNotFound(names.status())) return absl::OkStatus();
  KERNIX_RETURN_IF_ERROR(names.status());
  for (const std::string& name : *names) {
    if (!Digest::FromHex(name).ok()) continue;
    KERNIX_RETURN_IF_ERROR(env.Rename(JoinPath(old.blobs, name), JoinPath(paths.blobs, StrCat(name, kBlobSuffix))));
  }
  return env.SyncDirectory(paths.blobs);
}

}  // namespace

OldStorePaths::OldStorePaths(const std::string& directory)
    : lock(JoinPath(directory, "lock")),
      owner(JoinPath(directory, "owner")),
      blobs(JoinPath(directory, "blobs")),
      index(JoinPath(directory, "index.sqlite")),
      scratch(JoinPath(directory, "tmp")) {}

absl::Status TakeOverOldStore(Env& env, const OldStorePaths& old, const StorePaths& paths) {
  KERNIX_RETURN_IF_ERROR(CopyIndex(env, old, paths));
  return MoveArtifacts(env, old, paths);
}

// Removes the index last: while it exists, the conversion is not complete.
absl::Status RemoveOldStore(Env& env, const OldStorePaths& old) {
  if (!env.Stat(old.index, /*follow=*/false).ok()) return absl::OkStatus();
  for (const std::string& path : {old.blobs, old.scratch, old.owner, old.lock}) {
    KERNIX_RETURN_IF_ERROR(env.RemoveTree(path));
  }
  for (const char* suffix : {".damaged", ".damaged-wal", ".damaged-shm", "-shm", "-wal", ""}) {
    KERNIX_RETURN_IF_ERROR(env.RemoveTree(StrCat(old.index, suffix)));
  }
  return absl::OkStatus();
}

}  // namespace kernix::cache
