// SPDX-License-Identifier: Apache-2.0
//
// The results of single steps, for builds that need one of them again. Lies below the artifact cache: it may lose any
// result at any time.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "common/base/digest.h"
#include "common/base/mutex.h"
#include "common/os/env.h"
#include "daemon/cache/entry.h"

namespace kernix::cache {

struct StepResult {
  std::vector<std::pair<std::string, std::string>> outputs;  // paths and contents
  std::vector<ToolchainHeader> headers;                      // that the step has read
};

// A folder with a file for each result: its SHA-256, then its bytes. Keeps the results used most recently, up to a
// number of bytes. Errors of the disk lose results, and are no errors of the store. Thread-safe.
class StepStore {
 public:
  // Finds what earlier processes have left in `folder`, and creates the folder when it is needed. `env` must outlive
  // the store.
  StepStore(Env& env, std::string folder, uint64_t limit_bytes);

  // The result under `key`. A file that does not hold the bytes that were written is removed.
  std::optional<StepResult> Find(const Digest& key);

  // Keeps `result`, and drops what was not used for longest beyond the limit. Drops `result` itself if it is larger
  // than an eighth of that.
  void Put(const Digest& key, const StepResult& result);

  void RemoveAll();

  uint64_t bytes() const;
  uint64_t limit_bytes() const { return limit_bytes_; }

 private:
  struct Kept {
    Digest key;
    uint64_t bytes;
  };
  using List = std::list<Kept>;

  std::string PathOf(const Digest& key) const;
  void Add(const Digest& key, uint64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(const Digest& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the keys to remove from the disk.
  std::vector<Digest> Evict() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveFiles(const std::vector<Digest>& keys);

  Env& env_;
  const std::string folder_;
  const uint64_t limit_bytes_;
  std::atomic<uint64_t> writes_ = 0;
  mutable Mutex mutex_;
  List kept_ ABSL_GUARDED_BY(mutex_);  // most recently used first
  absl::flat_hash_map<Digest, List::iterator> places_ ABSL_GUARDED_BY(mutex_);
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace kernix::cache
