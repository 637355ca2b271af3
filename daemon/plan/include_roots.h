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

using HeaderContents = absl::flat_hash_map<Digest, exec::Content>;

// Returns a tree for each of a build's `roots` that is not empty. Each tree is either new, or was kept earlier and is
// unchanged since: builds with the same tree share one copy on the disk. No two trees of a build are the same, even
// with the same files, because compilers take a folder that appears twice for one folder. `contents` must have all
// files that lack theirs.
std::vector<exec::InputTreePtr> TreesOf(const std::vector<const RootTree*>& roots, const HeaderContents& contents,
                                        exec::KeptTrees& kept);

}  // namespace kernix::build
