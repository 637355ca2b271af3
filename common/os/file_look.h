// SPDX-License-Identifier: Apache-2.0
//
// Whether files are as they were: one look at files, for many who ask at the same time; the files of a running process,
// which somebody may remove or exchange; and what the latest load has seen.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/lru.h"
#include "common/os/env.h"
#include "common/os/file_identity.h"

namespace kernix {

// Finds out whether files have changed, and looks at each file once, however many questions name it. What it says was
// true at some time after its construction, so it may answer everybody who asked before that, and nobody who asks
// later. Not thread-safe; make a new one for each round.
class FileLook {
 public:
  using Files = std::shared_ptr<const std::vector<WatchedFile>>;
  // Lists that are known to be unchanged, apart from these of their files.
  using KnownLists = Lru<Files, std::vector<const WatchedFile*>>;

  explicit FileLook(Env& env) : FileLook(env, nullptr) {}
  FileLook(const FileLook&) = delete;
  FileLook& operator=(const FileLook&) = delete;

  // Whether all `files` have their recorded state, links followed.
  bool Unchanged(const Files& files);

  // How many files it has looked at, and how many it did not have to.
  size_t looked_at() const { return found_.size(); }
  size_t spared() const { return spared_; }

 private:
  friend class Lookout;
  FileLook(Env& env, KnownLists* known) : env_(env), known_(known) {}
  bool FindOut(const Files& files);
  bool IsAsRecorded(const WatchedFile& file);

  Env& env_;
  KnownLists* const known_;  // null: none
  size_t spared_ = 0;
  // The lists, which stay alive as long as their addresses stand for them, and what was found out.
  absl::flat_hash_map<Files, bool> lists_;
  absl::flat_hash_map<std::string_view, std::optional<FileIdentity>> found_;  // by a path in one of the lists
};

// Makes the looks of one round after the other, and spares most of them: what was found unchanged is watched, as far as
// `env` can. Not thread-safe.
class Lookout {
 public:
  explicit Lookout(Env& env) : env_(env), watch_(env.WatchFiles()) {}

  // A look that begins now. Use it until the next one, or until Watch().
  FileLook Look();

  // Has the files watched that `look` has found unchanged. That takes longer than the look: call it when nobody waits
  // for an answer.
  void Watch(const FileLook& look);

 private:
  // More than a daemon knows of (build::KnownLoads).
  static constexpr size_t kMostLists = 1024;

  void Watch(const FileLook::Files& files);

  Env& env_;
  const std::unique_ptr<FileWatch> watch_;  // may be null
  FileLook::KnownLists known_{kMostLists};
};

// Notices that files of a running process were removed, or exchanged for others of their names.

// Knows files and folders by their names, and which they were. Thread-safe once all are added.
class FilesInPlace {
 public:
  explicit FilesInPlace(Env& env) : env_(env) {}

  // Notes what `path` leads to now. What is not there is not missed later either.
  void Add(const std::string& path);
  // The same for a file that may have another name yet.
  void Add(const std::string& path, const FileId& id) { files_[path] = id; }

  // The first name that leads to nothing now, or to something else; empty: all are in place. Looks at each of them.
  std::string FirstLost() const;

  std::vector<std::string> Names() const;

 private:
  Env& env_;
  std::map<std::string, FileId> files_;
};

// Whether to load again because files have changed.

// What the latest load has seen of the files and folders that it depends on. Not thread-safe.
class SeenFiles {
 public:
  explicit SeenFiles(Env& env) : env_(env) {}

  // Looks at `paths`. Returns whether one of them, or the list itself, is not as the latest load has seen it, so that a
  // load may give something else. True before the first load.
  bool Changed(const std::vector<std::string>& paths);

  // Notes what a load has seen that has begun after Changed() and has ended now. It depends on `paths`, of which it may
  // have found some. What might have changed while it ran counts as changed.
  void NoteLoad(const std::vector<std::string>& paths);

 private:
  using States = std::map<std::string, std::optional<FileIdentity>>;

  States Look(const std::vector<std::string>& paths) const;

  Env& env_;
  States before_;  // when Changed() looked
  int64_t begun_unix_ms_ = 0;
  std::optional<States> seen_;
};

}  // namespace kernix
