// SPDX-License-Identifier: Apache-2.0
//
// Files that many actions share, written to disk once: writing a header tree of thousands of files can take longer than
// compiling the code that includes it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "common/base/digest.h"
#include "common/base/lru.h"
#include "common/base/mutex.h"
#include "common/os/env.h"
#include "common/os/file_identity.h"
#include "daemon/exec/blob.h"

namespace kernix::exec {

// How deep in an action's root a tree may appear. Actions see a tree through a link, and ".." behind a link leads to
// the folder that really contains the tree. So each tree is this deep in a folder of its own: a path that textually
// stays in the root finds nothing there.
inline constexpr int kMaxMountDepth = 2;

// Written when the first action needs it; removed when the tree is destroyed. Thread-safe.
class InputTree {
 public:
  // Paths must be relative and must not leave the tree.
  explicit InputTree(std::vector<InputFile> files) : files_(std::move(files)) {}
  ~InputTree();
  InputTree(const InputTree&) = delete;
  InputTree& operator=(const InputTree&) = delete;

  // Returns a folder in `scratch_directory` that holds exactly these files. The first caller writes it while others
  // wait. On error, nothing remains and the next caller tries again. `env` must outlive the tree. All calls must name
  // the same directory.
  absl::StatusOr<std::string> Stage(Env& env, const std::string& scratch_directory);

  // All files. Their contents are null once they are staged.
  std::vector<InputFile> Files();

  // The content of one of Files(), read back if need be. An error if it cannot be read, or has changed.
  absl::StatusOr<Content> Load(const InputFile& file);

  // The folder that Stage() has returned; empty before: the contents of the files are still in memory.
  std::string Folder();

  // Whether the staged files are exactly those written: none was changed, added or removed. True before staging.
  bool Intact();

 private:
  absl::Status Write(Env& env, const std::string& top) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  std::vector<InputFile> files_ ABSL_GUARDED_BY(mutex_);  // without contents once they are written
  Env* env_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::string top_ ABSL_GUARDED_BY(mutex_);                   // the folder that holds only the tree; empty: not staged
  std::vector<WatchedFile> written_ ABSL_GUARDED_BY(mutex_);  // includes folders, which reveal added files
};

using InputTreePtr = std::shared_ptr<InputTree>;

// A tree and its path in an action's root, at most kMaxMountDepth deep.
struct MountedTree {
  std::string path;
  BlobDigest digest;  // of the folder
  InputTreePtr tree;
};

// Trees that serve more than one build: the most recently used ones, up to a number of bytes on disk. Thread-safe.
class KeptTrees {
 public:
  explicit KeptTrees(uint64_t limit_bytes) : trees_(limit_bytes) {}

  // Null if there is none, or if its files have been changed.
  InputTreePtr Find(const Digest& id);

  // Returns the tree that is kept now: the one that somebody else has added meanwhile, if there is one.
  InputTreePtr Keep(const Digest& id, InputTreePtr tree, uint64_t bytes);

  void Drop(const InputTreePtr& tree);

  // Releases those of `trees` whose contents are still in memory.
  void DropUnstaged(const std::vector<MountedTree>& trees);

 private:
  Mutex mutex_;
  Lru<Digest, InputTreePtr> trees_ ABSL_GUARDED_BY(mutex_);  // by bytes
};

// Writes `files` and their folders below `root`, all with the same, constant modification time.
absl::Status WriteInputs(Env& env, const std::string& root, const std::vector<InputFile>& files);

// Makes a new folder. Returns its path with all links resolved, as tools will print it.
absl::StatusOr<std::string> MakeScratchFolder(Env& env, const std::string& scratch_directory, std::string_view prefix);

// Removes it with all that is in it. The log says if that fails.
void RemoveScratchFolder(Env& env, const std::string& folder);

}  // namespace kernix::exec
