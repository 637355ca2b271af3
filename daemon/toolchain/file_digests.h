// SPDX-License-Identifier: Apache-2.0
//
// Content digests of files that rarely change (compilers, system headers).
#pragma once

#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "common/base/digest.h"
#include "common/base/mutex.h"
#include "common/os/env.h"
#include "common/os/file_identity.h"
#include "common/os/known_file.h"

namespace kernix::toolchain {

// Remembers a file's digest until its identity changes. Thread-safe; files are read outside the lock.
class FileDigests {
 public:
  // What is known of a file.
  struct Content {
    Digest digest;
    FileIdentity identity;
    // When the file was first seen in that state. Not when this content was first seen: there may
    // have been another one in between.
    MonotonicTime since;
  };

  explicit FileDigests(Env& env) : env_(env) {}

  // The SHA-256 of the file's content. The status of Env::Stat() or Env::ReadFile() on error.
  absl::StatusOr<Digest> Get(const std::string& path);
  absl::StatusOr<Content> GetContent(const std::string& path);

  // The same; adds the file, as it was before it was read, to `watched`.
  absl::StatusOr<Digest> Get(const std::string& path, std::vector<WatchedFile>& watched);

  // Takes over what an earlier process has found out. What is known already stays.
  void Remember(const std::vector<KnownFile>& files);

  // What was found out since the last call and can be told to a later process: only files that
  // were settled when they were read.
  std::vector<KnownFile> TakeNews();

  // The files of a TakeNews() that could not be saved. What was found out since then counts.
  void PutBackNews(const std::vector<KnownFile>& files);

 private:
  // The content of a file that was `before` a moment ago.
  absl::StatusOr<Content> KnownOrRead(const std::string& path, const FileIdentity& before);
  absl::StatusOr<Content> Read(const std::string& path, const FileIdentity& before);

  Env& env_;
  Mutex mutex_;
  absl::flat_hash_map<std::string, Content> known_ ABSL_GUARDED_BY(mutex_);
  std::vector<KnownFile> news_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::toolchain
