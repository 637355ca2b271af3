// SPDX-License-Identifier: Apache-2.0
//
// A file's identity, whether it has changed since it was last read, and the digest of its content.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/digest.h"
#include "common/os/env.h"

namespace kernix {

// Identifies a file of this machine independently of its name.
struct FileId {
  uint64_t device = 0;
  uint64_t inode = 0;

  static FileId Of(const FileInfo& info) { return {info.device, info.inode}; }
  auto operator<=>(const FileId&) const = default;
};

// Identifies a file and its state. If two identities are equal and the first was settled, the content is the same.
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

  // Whether every change after `unix_ms` shows in the identity. A change shows only if the file system's clock has
  // advanced since the change before it. So a file that was too young when it was read must be read again.
  bool SettledAt(int64_t unix_ms) const;
};

// Returns the status of Env::Stat() on an error. With `follow`, describes the file that a link points to.
absl::StatusOr<FileIdentity> IdentityOf(Env& env, const std::string& path, bool follow = true);

// Whether both paths lead to the same existing file or folder.
bool IsSameFile(Env& env, const std::string& a, const std::string& b);

// The recorded state of a file or folder.
struct WatchedFile {
  std::string path;
  std::optional<FileIdentity> identity;  // nothing: it is not there, or cannot be looked at

  bool operator==(const WatchedFile&) const = default;
};

// The current state of `path`.
WatchedFile StateOf(Env& env, const std::string& path, bool follow = true);

// Adds the current state of `path`, which has to be there. Returns the status of Env::Stat() on an error.
absl::Status Watch(Env& env, const std::string& path, std::vector<WatchedFile>& files, bool follow = true);

// The first of `files` that no longer has its recorded state; null if all have. Pass the same `follow` as to Watch() or
// StateOf().
const WatchedFile* FirstChanged(Env& env, const std::vector<WatchedFile>& files, bool follow = true);

// Whether all files still have their recorded state.
bool Unchanged(Env& env, const std::vector<WatchedFile>& files, bool follow = true);

// The SHA-256 of a file's content. Holds a small piece of it at a time: fresh memory for a large file would take longer
// than reading it. Returns the status of ReadAt() on an error.
absl::StatusOr<Digest> DigestOfFile(ReadableFile& file);

// A file whose content has been digested.
struct KnownFile {
  std::string path;
  FileIdentity identity;  // at the time of the digest
  Digest digest;
};

}  // namespace kernix
