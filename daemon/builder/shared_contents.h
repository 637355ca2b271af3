// SPDX-License-Identifier: Apache-2.0
//
// Headers that several builds hold at the same time.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "common/base/digest.h"
#include "common/base/mutex.h"
#include "daemon/exec/blob.h"
#include "daemon/plan/include_roots.h"

namespace kernix::build {

// Equal contents are one in memory, as long as a build holds them: the kernels of one project that are loaded at once
// have the same headers. Each build has received its own, so nobody gets at another's. Thread-safe.
class SharedContents {
 public:
  // Exchanges each content for an equal one that is held.
  HeaderContents Share(HeaderContents contents) {
    const MutexLock lock(mutex_);
    absl::erase_if(held_, [](const auto& entry) { return entry.second.expired(); });
    for (auto& [digest, content] : contents) {
      std::weak_ptr<const std::string_view>& held = held_[digest];
      if (exec::Content same = held.lock()) {
        content = std::move(same);
      } else {
        held = content;
      }
    }
    return contents;
  }

 private:
  Mutex mutex_;
  absl::flat_hash_map<Digest, std::weak_ptr<const std::string_view>> held_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::build
