// SPDX-License-Identifier: Apache-2.0
//
// The results of single steps, for builds that need one of them again. Lies below the artifact cache: it may lose any
// result at any time.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/digest.h"
#include "common/base/lru.h"
#include "common/base/mutex.h"
#include "common/os/env.h"
#include "daemon/cache/entry.h"

namespace kernix::cache {

struct StepResult {
  std::vector<std::pair<std::string, std::string>> outputs;  // paths and contents
  std::vector<StatedHeader> headers;                         // that the step has read
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
  struct File {};  // which lies at PathOf() its key

  std::string PathOf(const Digest& key) const;
  // Drops what does not fit any more.
  void Keep(const Digest& key, uint64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveFile(const Digest& key);

  Env& env_;
  const std::string folder_;
  const uint64_t limit_bytes_;
  std::atomic<uint64_t> writes_ = 0;
  mutable Mutex mutex_;
  Lru<Digest, File> kept_ ABSL_GUARDED_BY(mutex_);  // by bytes
};

}  // namespace kernix::cache
