// SPDX-License-Identifier: Apache-2.0
//
// Makes SIGTERM, SIGINT and SIGHUP available to wait for.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/os/unique_fd.h"

namespace kernix::server {

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

}  // namespace kernix::server
