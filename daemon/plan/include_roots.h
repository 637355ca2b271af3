// SPDX-License-Identifier: Apache-2.0
//
// A build's include roots, and our kernel headers: what they hold, and how they lie on disk.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/digest.h"
#include "daemon/exec/blob.h"
#include "daemon/exec/input_tree.h"
#include "daemon/request/request.h"

namespace kernix::build {

// An include root, or our kernel headers.
struct RootTree {
  std::vector<exec::InputFile> files;  // by paths relative to "inc/<index>"; those of requests have no contents
  exec::BlobDigest digest;             // of the folder, see exec::MerkleTree
};

struct IncludeRoots {
  Digest list;  // of the request's list of headers
  std::vector<RootTree> roots;
};

using IncludeRootsPtr = std::shared_ptr<const IncludeRoots>;

// The folder of the root in the input root. It is deep enough that paths with which the root's headers climb out stay
// inside "inc/<index>".
std::string IncludeRootFolder(const BuildRequest& request, uint32_t index);

// "inc/<index>".
std::string TopOfIncludeRoot(uint32_t index);

// The roots of a request's headers.
IncludeRootsPtr MakeIncludeRoots(const BuildRequest& request);

// The include roots of builds, and our kernel headers, as they lie on disk. Builds with the same tree share one copy.
using HeaderContents = absl::flat_hash_map<Digest, exec::Content>;

// Thread-safe.
class HeaderTrees {
 public:
  // Keeps the most recently used trees, up to a number of bytes on disk.
  explicit HeaderTrees(uint64_t limit_bytes) : kept_(limit_bytes) {}

  // Returns a tree for each of a build's `roots` that is not empty. Each tree is either new, or was made earlier and is
  // unchanged since. No two trees are the same, even with the same files, because compilers take a folder that appears
  // twice for one folder. `contents` must have all files that lack theirs.
  std::vector<exec::InputTreePtr> Get(const std::vector<const RootTree*>& roots, const HeaderContents& contents);

  // Called at the end of a build. Releases those of `trees` whose contents are still in memory because no action needed
  // them on disk.
  void DropUnstaged(const std::vector<exec::MountedTree>& trees) { kept_.DropUnstaged(trees); }

 private:
  exec::InputTreePtr Get(const Digest& id, const std::vector<exec::InputFile>& files, const HeaderContents& contents);

  exec::KeptTrees kept_;
};

}  // namespace kernix::build
