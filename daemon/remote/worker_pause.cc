// SPDX-License-Identifier: Apache-2.0
#include "daemon/remote/worker_pause.h"

#include <utility>

namespace kernix::remote {

WorkerPause::Answer WorkerPause::Ask() {
  const MutexLock lock(mutex_);
  if (!why_) return Answer::kSend;
  if (env_.Now() < next_probe_) return Answer::kHold;
  next_probe_ = env_.Now() + kProbeInterval;
  return Answer::kProbe;
}

void WorkerPause::NotTaken(std::string why) {
  const MutexLock lock(mutex_);
  why_ = std::move(why);
  next_probe_ = env_.Now() + kProbeInterval;
}

void WorkerPause::Taken() {
  const MutexLock lock(mutex_);
  why_.reset();
}

std::optional<std::string> WorkerPause::why() const {
  const MutexLock lock(mutex_);
  return why_;
}

}  // namespace kernix::remote
