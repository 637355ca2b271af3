// SPDX-License-Identifier: Apache-2.0
//
// A file's identity, whether it has changed since it was last read, and the digest of its content.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "common/base/digest.h"
#include "common/base/lru.h"
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
  template <typename H>
  friend H AbslHashValue(H hash, const FileIdentity& file) {
    return H::combine(std::move(hash), file.device, file.inode, file.size, file.mtime_ns, file.ctime_ns);
  }

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
// than reading it. Reads at most `most` bytes, of which the digest is then. Returns the status of ReadAt() on an error.
absl::StatusOr<Digest> DigestOfFile(ReadableFile& file, uint64_t most = UINT64_MAX);

// A file whose content has been digested.
struct KnownFile {
  std::string path;
  FileIdentity identity;  // at the time of the digest
  Digest digest;
};

// Finds out whether files have changed. Stats each file once, however many questions name it. Its answers were true at
// some time after its construction, so they are for questions asked before that, and for no later ones. Not
// thread-safe; make a new one for each round.
class FileCheck {
 public:
  using Files = std::shared_ptr<const std::vector<WatchedFile>>;
  // Lists that are known to be unchanged, apart from these of their files.
  using KnownLists = Lru<Files, std::vector<const WatchedFile*>>;

  explicit FileCheck(Env& env) : FileCheck(env, nullptr) {}
  FileCheck(const FileCheck&) = delete;
  FileCheck& operator=(const FileCheck&) = delete;

  // Whether all `files` have their recorded state, links followed.
  bool Unchanged(const Files& files);

  // How many files it has checked, and how many it did not have to check.
  size_t checked() const { return found_.size(); }
  size_t spared() const { return spared_; }

 private:
  friend class FileChecker;
  FileCheck(Env& env, KnownLists* known) : env_(env), known_(known) {}
  bool FindOut(const Files& files);
  bool IsAsRecorded(const WatchedFile& file);

  Env& env_;
  KnownLists* const known_;  // null: none
  size_t spared_ = 0;
  // The lists, which stay alive as long as their addresses stand for them, and what was found out.
  absl::flat_hash_map<Files, bool> lists_;
  absl::flat_hash_map<std::string_view, std::optional<FileIdentity>> found_;  // by a path in one of the lists
};

// Makes the checks of one round after the other. Watches files that were unchanged, as far as `env` can, and so saves
// most of the calls of stat(). Not thread-safe.
class FileChecker {
 public:
  explicit FileChecker(Env& env) : env_(env), watch_(env.WatchFiles()) {}

  // A check that begins now. Use it until the next one, or until Watch().
  FileCheck Begin();

  // Watches the files that `check` has found unchanged. That takes longer than the check: call it when nobody waits for
  // an answer.
  void Watch(const FileCheck& check);

 private:
  // More than a daemon knows of (build::KnownLoads).
  static constexpr size_t kMostLists = 1024;

  void Watch(const FileCheck::Files& files);

  Env& env_;
  const std::unique_ptr<FileWatch> watch_;  // may be null
  FileCheck::KnownLists known_{kMostLists};
};

// Notices that files of a running process were removed or replaced: their names and identities. Thread-safe once all
// are added.
class OwnFiles {
 public:
  explicit OwnFiles(Env& env) : env_(env) {}

  // Notes the file that `path` leads to now. If there is none, its absence is no loss later.
  void Add(const std::string& path);
  // The same for a file that may have another name yet.
  void Add(const std::string& path, const FileId& id) { files_[path] = id; }

  // The first name that leads to nothing now, or to something else; empty: none is lost. Stats each of them.
  std::string FirstLost() const;

  std::vector<std::string> Names() const;

 private:
  Env& env_;
  std::map<std::string, FileId> files_;
};

// The state of the files and folders that the latest load depends on, as it has seen them. Not thread-safe.
class SeenFiles {
 public:
  explicit SeenFiles(Env& env) : env_(env) {}

  // Returns whether one of `paths`, or the list itself, is not as the latest load has seen it. Then a load may give
  // something else. True before the first load.
  bool Changed(const std::vector<std::string>& paths);

  // Notes the state for a load that began after Changed() and has ended now. It depends on `paths`, some of which may
  // not exist. A file that might have changed while the load ran counts as changed.
  void NoteLoad(const std::vector<std::string>& paths);

 private:
  using States = std::map<std::string, std::optional<FileIdentity>>;

  States StatesOf(const std::vector<std::string>& paths) const;

  Env& env_;
  States before_;  // when Changed() looked
  int64_t begun_unix_ms_ = 0;
  std::optional<States> seen_;
};

}  // namespace kernix
