// SPDX-License-Identifier: Apache-2.0
//
// For tests: a real kernixd on private paths, as a child of the test.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/os/unique_fd.h"

namespace kernix {

// A private folder for a daemon: store, socket, log, home. Its path is short enough for a socket. If the test fails,
// the folder stays, and stderr names it.
class KernixdPlace {
 public:
  KernixdPlace();
  ~KernixdPlace();
  KernixdPlace(const KernixdPlace&) = delete;
  KernixdPlace& operator=(const KernixdPlace&) = delete;

  const std::string& root() const { return root_; }
  std::string store() const { return root_ + "/store"; }
  std::string socket() const { return root_ + "/k.sock"; }

 private:
  const std::string root_;
};

struct KernixdCommand {
  std::string program;                 // path of kernixd
  std::vector<std::string> arguments;  // --socket and --store-directory are added
  std::map<std::string, std::string> environment;
  std::optional<uid_t> user;  // user and group that it runs as; requires root
  int inherited_fd = -1;      // becomes descriptor 3 of the daemon
  // Instead of binding a socket, passes descriptor 3 as systemd does.
  bool socket_activation = false;
  bool place_arguments = true;  // false: `arguments` are complete
};

// Ends with the test: killed if it is still running.
class KernixdProcess {
 public:
  // Returns when the process exists; it may not serve yet.
  static absl::StatusOr<std::unique_ptr<KernixdProcess>> Start(const KernixdPlace& place,
                                                               const KernixdCommand& command);
  ~KernixdProcess();
  KernixdProcess(const KernixdProcess&) = delete;
  KernixdProcess& operator=(const KernixdProcess&) = delete;

  // Waits until the daemon reports READY=1. Returns kUnavailable, with its log, if it ends instead.
  absl::Status AwaitReady();

  void Signal(int number) const;

  // Waits until it ends. Returns its exit code, or 128 + the signal.
  int AwaitExit();

  pid_t pid() const { return pid_; }
  // The complete output so far.
  std::string Log() const;

 private:
  KernixdProcess(pid_t pid, UniqueFd process, UniqueFd notify, std::string log)
      : pid_(pid), process_(std::move(process)), notify_(std::move(notify)), log_(std::move(log)) {}

  const pid_t pid_;
  const UniqueFd process_;  // a pidfd
  const UniqueFd notify_;   // receives sd_notify()'s messages
  const std::string log_;
  int exit_code_ = -1;
};

}  // namespace kernix
