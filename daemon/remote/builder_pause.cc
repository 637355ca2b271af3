// SPDX-License-Identifier: Apache-2.0
#include "daemon/remote/builder_pause.h"

#include <utility>

namespace kernix::remote {

BuilderPause::Answer BuilderPause::Ask() {
  const MutexLock lock(mutex_);
  if (!why_) return Answer::kSend;
  if (env_.Now() < next_probe_) return Answer::kHold;
  next_probe_ = env_.Now() + kProbeInterval;
  return Answer::kProbe;
}

void BuilderPause::NotTaken(std::string why) {
  const MutexLock lock(mutex_);
  why_ = std::move(why);
  next_probe_ = env_.Now() + kProbeInterval;
}

void BuilderPause::Taken() {
  const MutexLock lock(mutex_);
  why_.reset();
}

std::optional<std::string> BuilderPause::why() const {
  const MutexLock lock(mutex_);
  return why_;
}

}  // namespace kernix::remote
