// SPDX-License-Identifier: Apache-2.0
//
// Trees that serve more than one build.
#pragma once

#include <cstdint>
#include <list>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "common/base/digest.h"
#include "common/base/mutex.h"
#include "daemon/exec/input_tree.h"

namespace kernix::exec {

// Keeps the most recently used trees, up to a number of bytes on disk. Thread-safe.
class KeptTrees {
 public:
  explicit KeptTrees(uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  // Null if there is none, or if its files have been changed.
  InputTreePtr Find(const Digest& id);

  // Returns the tree that is kept now: the one that somebody else has added meanwhile, if there is one.
  InputTreePtr Keep(const Digest& id, InputTreePtr tree, uint64_t bytes);

  void Drop(const Digest& id);

  // Releases those of `trees` whose contents are still in memory.
  void DropUnstaged(const std::vector<MountedTree>& trees);

 private:
  struct Kept {
    Digest id;
    InputTreePtr tree;
    uint64_t bytes = 0;
  };
  using Trees = std::list<Kept>;

  InputTreePtr Use(const Digest& id);
  void Drop(Trees::iterator kept, Trees& surplus) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const uint64_t limit_bytes_;
  Mutex mutex_;
  Trees trees_ ABSL_GUARDED_BY(mutex_);  // most recently used first
  absl::flat_hash_map<Digest, Trees::iterator> places_ ABSL_GUARDED_BY(mutex_);
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace kernix::exec
