// SPDX-License-Identifier: Apache-2.0
//
// Whether a file has changed since it was last looked at.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/os/env.h"

namespace kernix {

// Which file of this machine, whatever its name is.
struct FileId {
  uint64_t device = 0;
  uint64_t inode = 0;

  static FileId Of(const FileInfo& info) { return {info.device, info.inode}; }
  auto operator<=>(const FileId&) const = default;
};

// Which file, and in which state: two identities that are equal leave no room for another content, as long as the first
// was settled.
struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t size = 0;
  int64_t mtime_ns = 0;
  int64_t ctime_ns = 0;

  static FileIdentity Of(const FileInfo& info) {
    return {info.device, info.inode, info.size, info.mtime_ns, info.ctime_ns};
  }
  bool operator==(const FileIdentity&) const = default;

  // Whether every change after `unix_ms` shows in the identity. A change shows only when the clock of the file system
  // has moved on since the one before. So a file that was read when it was too young must be read again.
  bool SettledAt(int64_t unix_ms) const;
};

// The status of Env::Stat() on error. `follow`: of what a link points to.
absl::StatusOr<FileIdentity> IdentityOf(Env& env, const std::string& path, bool follow = true);

// Whether both paths lead to one file or folder that is there.
bool IsSameFile(Env& env, const std::string& a, const std::string& b);

// A file as it was.
struct WatchedFile {
  std::string path;
  FileIdentity identity;

  bool operator==(const WatchedFile&) const = default;
};

// Adds `path` as it is now. The status of Env::Stat() on error.
absl::Status Watch(Env& env, const std::string& path, std::vector<WatchedFile>& files, bool follow = true);

// Whether all are as they were. `follow` as with Watch().
bool Unchanged(Env& env, const std::vector<WatchedFile>& files, bool follow = true);

}  // namespace kernix
