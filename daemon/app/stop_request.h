// SPDX-License-Identifier: Apache-2.0
//
// Why and how a daemon stops.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/os/env.h"
#include "common/os/unique_fd.h"

namespace kernix::server {

struct StopReason {
  std::string text;
  Duration drain_timeout{0};  // 0: the daemon's own setting
};

// Any thread may set it; the main thread waits for it. Thread-safe.
class StopRequest {
 public:
  StopRequest();

  // Only the first call counts.
  void Set(std::string_view reason, Duration drain_timeout = Duration{0});

  std::optional<StopReason> Get() const;

  // Becomes readable once the request is set; negative if the system had no descriptor left.
  int fd() const { return fd_.get(); }

 private:
  const UniqueFd fd_;
  mutable Mutex mutex_;
  std::optional<StopReason> reason_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::server
