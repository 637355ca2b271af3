// SPDX-License-Identifier: Apache-2.0
//
// Keeps steps from waiting, one after the other, for workers that do not come.
#pragma once

#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"
#include "common/os/env.h"

namespace kernix::remote {

// Begins when no worker has taken an action within the queue limit, and ends when a worker has taken one. Meanwhile a
// single action each kProbeInterval finds out, and the others run elsewhere. Thread-safe.
class WorkerPause {
 public:
  static constexpr Duration kProbeInterval = std::chrono::minutes(1);

  enum class Answer { kSend, kProbe, kHold };

  // `env` (the clock) must outlive it.
  explicit WorkerPause(Env& env) : env_(env) {}

  // For an action that can run elsewhere. kProbe: send it, to find out.
  Answer Ask();

  // `why`: for people.
  void NotTaken(std::string why);
  void Taken();

  bool IsOn() const { return why().has_value(); }
  // Why it is on.
  std::optional<std::string> why() const;

 private:
  Env& env_;
  mutable Mutex mutex_;
  std::optional<std::string> why_ ABSL_GUARDED_BY(mutex_);
  MonotonicTime next_probe_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::remote
