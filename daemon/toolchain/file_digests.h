// SPDX-License-Identifier: Apache-2.0
//
// Content digests of files that rarely change (compilers, system headers).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "common/base/digest.h"
#include "common/base/mutex.h"
#include "common/os/env.h"
#include "common/os/file_identity.h"

namespace kernix::toolchain {

// Remembers a file's digest until its identity changes. Thread-safe; reads files outside the lock.
class FileDigests {
 public:
  // The known facts about a file.
  struct Content {
    Digest digest;
    FileIdentity identity;
    // When the file was first seen in this state. Not when this content was first seen: the file may have had other
    // content in between.
    MonotonicTime since;
  };

  explicit FileDigests(Env& env) : env_(env) {}

  // The SHA-256 of the file's content. On error, the status of Env::Stat() or Env::ReadFile().
  absl::StatusOr<Digest> Get(const std::string& path);
  absl::StatusOr<Content> GetContent(const std::string& path);

  // Also adds the file, in its state before it was read, to `watched`.
  absl::StatusOr<Digest> Get(const std::string& path, std::vector<WatchedFile>& watched);

  // Takes over the results of an earlier process. Does not replace what is already known.
  void Remember(const std::vector<KnownFile>& files);

  // Returns what was found since the last call and is safe to pass to a later process: only files whose time stamps
  // were settled when they were read.
  std::vector<KnownFile> TakeNews();

  // Takes back the files of a TakeNews() call that could not be saved. Newer results take precedence.
  void PutBackNews(const std::vector<KnownFile>& files);

 private:
  // The content of a file whose identity was `before` a moment ago.
  absl::StatusOr<Content> KnownOrRead(const std::string& path, const FileIdentity& before);
  absl::StatusOr<Digest> DigestOfContent(const std::string& path, uint64_t size);
  absl::StatusOr<Content> Read(const std::string& path, const FileIdentity& before);

  Env& env_;
  Mutex mutex_;
  absl::flat_hash_map<std::string, Content> known_ ABSL_GUARDED_BY(mutex_);
  std::vector<KnownFile> news_ ABSL_GUARDED_BY(mutex_);
};

// The files that make up a tool, and the tool's identity, which covers their content but not their place.
class Parts {
 public:
  // `role` is the file's name in the identity, independent of the tool's place.
  void Add(std::string role, std::string path) { parts_.push_back({std::move(role), std::move(path)}); }

  // Adds a part that not every tool has.
  void AddIfThere(std::string role, std::optional<std::string> path) {
    if (path) Add(std::move(role), *std::move(path));
  }

  // The present states of all parts that are there.
  std::vector<WatchedFile> States(Env& env) const;

  // A digest of roles and contents, in the order of Add(). Adds every part to `watched`. TOOLCHAIN if a file cannot be
  // read.
  absl::StatusOr<Digest> Identity(FileDigests& digests, std::string_view domain,
                                  std::vector<WatchedFile>& watched) const;

 private:
  struct Part {
    std::string role;
    std::string path;
  };
  std::vector<Part> parts_;
};

}  // namespace kernix::toolchain
