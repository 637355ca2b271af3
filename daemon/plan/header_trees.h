// SPDX-License-Identifier: Apache-2.0
//
// The include roots of builds, and our kernel headers, as they lie on disk. Builds with the same tree share one copy.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/digest.h"
#include "daemon/exec/kept_trees.h"
#include "daemon/plan/include_roots.h"

namespace kernix::build {

using HeaderContents = absl::flat_hash_map<Digest, exec::Content>;

// Thread-safe.
class HeaderTrees {
 public:
  // Keeps the most recently used trees, up to a number of bytes on disk.
  explicit HeaderTrees(uint64_t limit_bytes) : kept_(limit_bytes) {}

  // Returns a tree for each of a build's `roots` that is not empty. Each tree is either new, or was made earlier and is
  // unchanged since. No two trees are the same, even with the same files, because compilers take a folder that appears
  // twice for one folder. `contents` must have all files.
  std::vector<exec::InputTreePtr> Get(const std::vector<const RootTree*>& roots, const HeaderContents& contents);

  // Called at the end of a build. Releases those of `trees` whose contents are still in memory because no action needed
  // them on disk.
  void DropUnstaged(const std::vector<exec::MountedTree>& trees) { kept_.DropUnstaged(trees); }

 private:
  exec::InputTreePtr Get(const Digest& id, const std::vector<TreeFile>& files, const HeaderContents& contents);

  exec::KeptTrees kept_;
};

}  // namespace kernix::build
