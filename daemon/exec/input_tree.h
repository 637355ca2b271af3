// SPDX-License-Identifier: Apache-2.0
//
// Files that many actions see alike, on the disk once: to write a header tree of thousands of files can take longer
// than to compile what includes it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/os/env.h"
#include "common/os/file_identity.h"
#include "daemon/exec/input_file.h"

namespace kernix::exec {

// How deep in an action's root a tree may appear. It is seen through a link, and who climbs from a link is where the
// tree lies: so it lies as deep in a folder of its own, where a path that by its text stays in the root finds nothing.
inline constexpr int kMaxMountDepth = 2;

// Written when the first action needs it, removed when the tree goes. Thread-safe.
class InputTree {
 public:
  // Paths are relative and stay inside.
  explicit InputTree(std::vector<InputFile> files) : files_(std::move(files)) {}
  ~InputTree();
  InputTree(const InputTree&) = delete;
  InputTree& operator=(const InputTree&) = delete;

  // A folder in `scratch_directory` that holds the files and nothing else. The first caller writes it, while others
  // wait. On error nothing is left, and the next caller tries again. `env` must outlive the tree, which is staged in
  // one place only.
  absl::StatusOr<std::string> Stage(Env& env, const std::string& scratch_directory);

  // False: the contents of its files are still in memory.
  bool Staged();

  // Whether what is staged is what was written: no file was changed, added or removed. True before that.
  bool Intact();

 private:
  absl::Status Write(Env& env, const std::string& top) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  std::vector<InputFile> files_ ABSL_GUARDED_BY(mutex_);  // let go of once they are written
  Env* env_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::string top_ ABSL_GUARDED_BY(mutex_);  // that the tree lies in, and nothing else; empty: not staged
  std::vector<WatchedFile> written_ ABSL_GUARDED_BY(mutex_);  // folders, too: they show what is added
};

using InputTreePtr = std::shared_ptr<InputTree>;

// A tree and where in an action's root it appears, at most kMaxMountDepth deep.
struct MountedTree {
  std::string path;
  BlobDigest digest;  // of the folder
  InputTreePtr tree;
};

// Writes `files` with their folders below `root`, all with one modification time that never changes.
absl::Status WriteInputs(Env& env, const std::string& root, const std::vector<InputFile>& files);

// A new folder, with every link in its path resolved: as tools will print it.
absl::StatusOr<std::string> MakeScratchFolder(Env& env, const std::string& scratch_directory, std::string_view prefix);

}  // namespace kernix::exec
