// SPDX-License-Identifier: Apache-2.0
//
// Decides how many actions may run at once, by number and by memory.
#pragma once

#include <cstdint>

namespace kernix::exec {

// Not thread-safe.
class Admission {
 public:
  // `memory_budget_bytes` 0: no limit.
  Admission(int max_jobs, uint64_t memory_budget_bytes)
      : max_jobs_(max_jobs), budget_(memory_budget_bytes == 0 ? UINT64_MAX : memory_budget_bytes) {}

  // Whether an action with this estimate may start now. An action that exceeds a whole limit may start when nothing
  // else runs.
  bool MayStart(uint64_t estimate) const {
    if (running_ == 0) return true;
    return running_ < max_jobs_ && used_ <= budget_ && estimate <= budget_ - used_;
  }

  void Start(uint64_t estimate) {
    ++running_;
    used_ += estimate;
  }

  // Must be called with the value passed to Start().
  void Finish(uint64_t estimate) {
    --running_;
    used_ -= estimate;
  }

  int running() const { return running_; }

 private:
  const int max_jobs_;
  const uint64_t budget_;
  int running_ = 0;
  uint64_t used_ = 0;
};

}  // namespace kernix::exec
