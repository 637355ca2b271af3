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
#include "daemon/base/digest.h"
#include "daemon/base/mutex.h"
#include "daemon/exec/input_tree.h"

namespace kernix::build {

// A file of an include root, by its place below "inc/<index>".
struct TreeFile {
  exec::InputFile file;
  Digest digest;  // of its content
};

// Keeps the trees that were used last, up to a number of bytes on the disk, and none that no build has come to write.
// Thread-safe.
class HeaderTrees {
 public:
  explicit HeaderTrees(uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  // The tree of these files: one that was made before and is still what it was, or a new one.
  exec::InputTreePtr Get(const std::vector<TreeFile>& files);

 private:
  struct Kept {
    Digest id;
    exec::InputTreePtr tree;
    uint64_t bytes = 0;
  };
  using Trees = std::list<Kept>;

  exec::InputTreePtr Find(const Digest& id);
  exec::InputTreePtr Keep(const Digest& id, exec::InputTreePtr tree, uint64_t bytes);
  void Drop(Trees::iterator kept, Trees& surplus) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const uint64_t limit_bytes_;
  Mutex mutex_;
  Trees trees_ ABSL_GUARDED_BY(mutex_);  // the one used last in front
  absl::flat_hash_map<Digest, Trees::iterator> places_ ABSL_GUARDED_BY(mutex_);
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace kernix::build
