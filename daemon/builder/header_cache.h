// SPDX-License-Identifier: Apache-2.0
//
// The contents of headers that clients have sent recently, so that clients need not send them for every build.
#pragma once

#include <cstdint>
#include <list>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "common/base/digest.h"
#include "common/base/mutex.h"
#include "daemon/plan/plan.h"

namespace kernix::build {

// Keeps the most recently used contents, up to a number of bytes. Thread-safe.
class HeaderCache {
 public:
  explicit HeaderCache(uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  // The contents that are available, among `digests`.
  HeaderContents Find(const std::vector<Digest>& digests);

  // Each content must match its digest. A content larger than the limit is not kept.
  void Add(const HeaderContents& contents);

 private:
  struct Blob {
    Digest digest;
    exec::Content content;
  };
  using Blobs = std::list<Blob>;

  void Shrink() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const uint64_t limit_bytes_;
  Mutex mutex_;
  Blobs blobs_ ABSL_GUARDED_BY(mutex_);  // most recently used first
  absl::flat_hash_map<Digest, Blobs::iterator> places_ ABSL_GUARDED_BY(mutex_);
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace kernix::build
