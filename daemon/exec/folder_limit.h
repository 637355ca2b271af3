// SPDX-License-Identifier: Apache-2.0
//
// Limits the bytes of all files in the folder in which an action runs. The limits of a process (setrlimit) bound one
// file only.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

#include "common/base/cancellation.h"
#include "common/os/env.h"

namespace kernix::exec {

// Looks at the folder about five times a second, in a thread of its own, as long as it exists.
class FolderLimit {
 public:
  // Cancels `job` once the files in `folder` have `most` bytes more than now; 0: never. All must outlive the object.
  FolderLimit(Env& env, const std::string& folder, uint64_t most, Cancellation& job);
  ~FolderLimit();
  FolderLimit(const FolderLimit&) = delete;
  FolderLimit& operator=(const FolderLimit&) = delete;

  bool exceeded() const { return exceeded_; }

 private:
  void Watch(const std::string& folder, uint64_t most, Cancellation& job);

  Env& env_;
  std::atomic<bool> exceeded_ = false;
  Cancellation over_;
  std::thread thread_;
};

}  // namespace kernix::exec
