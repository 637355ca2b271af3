// SPDX-License-Identifier: Apache-2.0
//
// The include roots of builds, as they lie on the disk. What does not change from one build to the next is written
// once.
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

// Keeps the trees that were used last, up to a number of bytes on the disk. Thread-safe.
class HeaderTrees {
 public:
  explicit HeaderTrees(uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  // The trees of those of a build's include roots that are not empty: each was made before and is still what it was, or
  // is new. No two are the same, even of the same files, since compilers take a folder that is there twice for one.
  // `contents` has all of them.
  std::vector<exec::InputTreePtr> Get(const std::vector<IncludeRoot>& roots, const HeaderContents& contents);

  // For the end of a build: lets go of those among `trees` whose contents are still in memory, since no action has come
  // to write them.
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
  // Returns the tree that another build has kept by now, if there is one and it is not `damaged`.
  exec::InputTreePtr Keep(const Digest& id, exec::InputTreePtr tree, uint64_t bytes, const exec::InputTreePtr& damaged);
  void Drop(Trees::iterator kept, Trees& surplus) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const uint64_t limit_bytes_;
  Mutex mutex_;
  Trees trees_ ABSL_GUARDED_BY(mutex_);  // the one used last in front
  absl::flat_hash_map<Digest, Trees::iterator> places_ ABSL_GUARDED_BY(mutex_);
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace kernix::build
