// SPDX-License-Identifier: Apache-2.0
//
// The include roots of builds, and our kernel headers, as they lie on disk. Builds with the same tree share one copy.
#pragma once

#include <cstdint>
#include <list>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "common/base/digest.h"
#include "common/base/mutex.h"
#include "daemon/exec/input_tree.h"
#include "daemon/plan/include_roots.h"

namespace kernix::build {

using HeaderContents = absl::flat_hash_map<Digest, exec::Content>;

// Keeps the most recently used trees, up to a number of bytes on disk. Thread-safe.
class HeaderTrees {
 public:
  explicit HeaderTrees(uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  // Returns a tree for each of a build's `roots` that is not empty. Each tree is either new, or was made earlier and is
  // unchanged since. No two trees are the same, even with the same files, because compilers take a folder that appears
  // twice for one folder. `contents` must have all files.
  std::vector<exec::InputTreePtr> Get(const std::vector<const RootTree*>& roots, const HeaderContents& contents);

  // Called at the end of a build. Releases those of `trees` whose contents are still in memory because no action needed
  // them on disk.
  void DropUnstaged(const std::vector<exec::MountedTree>& trees);

 private:
  struct Kept {
    Digest id;
    exec::InputTreePtr tree;
    uint64_t bytes = 0;
  };
  using Trees = std::list<Kept>;

  exec::InputTreePtr Get(const Digest& id, const std::vector<TreeFile>& files, const HeaderContents& contents);
  exec::InputTreePtr Find(const Digest& id);
  // Returns the tree that another build has added meanwhile, if there is one and it is not `damaged`.
  exec::InputTreePtr Keep(const Digest& id, exec::InputTreePtr tree, uint64_t bytes, const exec::InputTreePtr& damaged);
  void Drop(Trees::iterator kept, Trees& surplus) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const uint64_t limit_bytes_;
  Mutex mutex_;
  Trees trees_ ABSL_GUARDED_BY(mutex_);  // most recently used first
  absl::flat_hash_map<Digest, Trees::iterator> places_ ABSL_GUARDED_BY(mutex_);
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace kernix::build
