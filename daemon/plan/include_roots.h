// SPDX-License-Identifier: Apache-2.0
//
// The include roots of a request as folders of an input root: the place and digest of each file.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/digest.h"
#include "common/base/mutex.h"
#include "daemon/exec/blob_digest.h"
#include "daemon/request/request.h"

namespace kernix::build {

// A file of an include root. The path is relative to "inc/<index>".
struct TreeFile {
  std::string path;
  exec::BlobDigest digest;
};

struct RootTree {
  std::vector<TreeFile> files;
  exec::BlobDigest digest;  // of the folder, see exec::MerkleTree
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

// Remembers the roots of the header lists that were requested most recently, up to a total number of headers. For
// thousands of headers, making the roots takes longer than a lookup may take. Thread-safe.
class IncludeRootsMemo {
 public:
  IncludeRootsPtr Get(const BuildRequest& request);

 private:
  IncludeRootsPtr Find(const Digest& list) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the roots of the same list that another thread has added meanwhile, if there are any.
  IncludeRootsPtr Keep(const IncludeRootsPtr& roots, size_t headers);

  struct Kept {
    IncludeRootsPtr roots;
    size_t headers;
  };
  Mutex mutex_;
  std::list<Kept> kept_ ABSL_GUARDED_BY(mutex_);  // most recently used first
  size_t headers_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace kernix::build
