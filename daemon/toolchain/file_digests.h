// SPDX-License-Identifier: Apache-2.0
//
// Content digests of files that rarely change (compilers, system headers).
#pragma once

#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "daemon/base/digest.h"
#include "daemon/base/env.h"
#include "daemon/base/known_file.h"
#include "daemon/base/mutex.h"

namespace kernix::toolchain {

// Whether what stat(2) says leaves no room for another content.
bool SameContent(const FileInfo& a, const FileInfo& b);

// Remembers a file's digest until its size, times or inode change. Thread-safe; files are read outside the lock.
class FileDigests {
 public:
  // What is known of a file.
  struct Content {
    Digest digest;
    FileInfo info;
    // When the file was first seen with this content, which it has had every time since.
    MonotonicTime since;
  };

  explicit FileDigests(Env& env) : env_(env) {}

  // The SHA-256 of the file's content. The status of Env::Stat() or Env::ReadFile() on error.
  absl::StatusOr<Digest> Get(const std::string& path);
  absl::StatusOr<Content> GetContent(const std::string& path);

  // Takes over what an earlier process has found out. What is known already stays.
  void Remember(const std::vector<KnownFile>& files);

  // What was found out since the last call and can be told to a later process: not a file that was changed less than
  // two seconds before it was read, since one more change could hide in the same time stamp.
  std::vector<KnownFile> TakeNews();

  // The files of a TakeNews() that could not be saved.
  void PutBackNews(const std::vector<KnownFile>& files);

 private:
  absl::StatusOr<Content> Read(const std::string& path, const FileInfo& before);

  Env& env_;
  Mutex mutex_;
  absl::flat_hash_map<std::string, Content> known_ ABSL_GUARDED_BY(mutex_);
  std::vector<KnownFile> news_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::toolchain
