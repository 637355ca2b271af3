// SPDX-License-Identifier: Apache-2.0
//
// Loads that were built or looked up before. Processes with the same kernels send the same requests: for a known one,
// the daemon need not check and plan again, nor read its answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "common/base/digest.h"
#include "common/base/identity.h"
#include "common/base/lru.h"
#include "common/base/mutex.h"
#include "common/os/file_identity.h"
#include "daemon/request/request.h"
#include "daemon/toolchain/toolchain.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::build {

// The answer to a load that is a hit. Valid while its inputs are unchanged: the toolchain, these headers, the cache's
// entry (Cache::changes()), and the artifact in the store.
struct KnownHit {
  Digest key;
  toolchain::ToolchainPtr toolchain;
  v1::LoadResult result;
  Digest artifact;
  FileCheck::Files headers;  // those of the toolchain that the build has read
  uint64_t cache_changes = 0;
};

using KnownHitPtr = std::shared_ptr<const KnownHit>;

// The digest of what the answer to a lookup depends on.
Digest DigestOfLookup(const v1::LookupRequest& lookup);

// Whether the check of `request` has read files outside the toolchain: nvdisasm, or libraries and objects that its
// flags name, which may change by the next load.
bool DependsOnFiles(const BuildRequest& request);

// Keeps hits by the digest of their request, at most `limit`. When it is full, the user with the most of them loses the
// least recently used one. Thread-safe.
class KnownLoads {
 public:
  // Longer answers are not kept.
  static constexpr size_t kMostHitBytes = 16 << 10;
  // How many headers all lists have together, of some 160 bytes each. Most kernels share a list with others.
  static constexpr size_t kMostHeaders = 64 << 10;

  explicit KnownLoads(size_t limit) : limit_(limit), loads_(limit) {}

  // Null if the load is not known, or was made with another toolchain.
  KnownHitPtr Find(const Digest& request, const toolchain::ToolchainPtr& toolchain);

  // `user`: who has loaded it.
  void Add(const Digest& request, UserId user, KnownHit hit);

 private:
  struct Kept {
    UserId user;
    KnownHitPtr hit;
  };

  void DropOne() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Lets loads with the same headers share one list. False: there is no room for it.
  bool ShareHeaders(KnownHit& hit) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Drops a part of the loads, and the lists that no other one has.
  void MakeRoomForHeaders() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t limit_;
  Mutex mutex_;
  Lru<Digest, Kept> loads_ ABSL_GUARDED_BY(mutex_);
  std::vector<FileCheck::Files> header_lists_ ABSL_GUARDED_BY(mutex_);
  size_t headers_ ABSL_GUARDED_BY(mutex_) = 0;  // in all lists
};

}  // namespace kernix::build
