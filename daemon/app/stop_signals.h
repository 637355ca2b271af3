// SPDX-License-Identifier: Apache-2.0
//
// SIGTERM, SIGINT and SIGHUP as something to wait for.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/os/unique_fd.h"

namespace kernix::server {

class StopSignals {
 public:
  // Blocks the signals, and ignores SIGPIPE. Before the process has a second thread: later ones inherit this.
  static absl::StatusOr<StopSignals> Take();

  // The name of one that has come, each once. Does not wait.
  std::optional<std::string> Next();

  // Readable when one has come.
  int fd() const { return fd_.get(); }

 private:
  explicit StopSignals(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace kernix::server
