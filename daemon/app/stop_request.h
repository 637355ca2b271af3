// SPDX-License-Identifier: Apache-2.0
//
// Why and how a daemon stops: on request, or on a signal.
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

// Makes SIGTERM, SIGINT and SIGHUP available to wait for.
class StopSignals {
 public:
  // Blocks the signals and ignores SIGPIPE. Must be called before the process has a second thread, because threads
  // inherit this.
  static absl::StatusOr<StopSignals> Take();

  // Returns the name of a signal that has arrived, once for each. Does not wait.
  std::optional<std::string> Next();

  // Becomes readable when a signal has arrived.
  int fd() const { return fd_.get(); }

 private:
  explicit StopSignals(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

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
