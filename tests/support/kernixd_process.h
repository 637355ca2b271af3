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

// A private folder for a daemon: store, socket, log, home. Short enough for a socket's path. Stays, with a line on
// stderr, when the test that used it has failed.
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
  std::vector<std::string> arguments;  // --socket and --store-directory are there already
  std::map<std::string, std::string> environment;
  std::optional<uid_t> user;  // who it runs as, with this number as its group too; only root can say
  int inherited_fd = -1;      // becomes descriptor 3 of the daemon
  // Instead of binding a socket: descriptor 3 is handed over as systemd does.
  bool socket_activation = false;
  bool place_arguments = true;  // false: `arguments` are all
};

// Ends with the test: killed when it still runs.
class KernixdProcess {
 public:
  // The process is there; it may not serve yet.
  static absl::StatusOr<std::unique_ptr<KernixdProcess>> Start(const KernixdPlace& place,
                                                               const KernixdCommand& command);
  ~KernixdProcess();
  KernixdProcess(const KernixdProcess&) = delete;
  KernixdProcess& operator=(const KernixdProcess&) = delete;

  // Waits until it says READY=1. Unavailable, with its log, when it ends instead.
  absl::Status AwaitReady();

  void Signal(int number) const;

  // Waits until it ends: its exit code, or 128 + the signal.
  int AwaitExit();

  pid_t pid() const { return pid_; }
  // All that it has printed.
  std::string Log() const;

 private:
  KernixdProcess(pid_t pid, UniqueFd process, UniqueFd notify, std::string log)
      : pid_(pid), process_(std::move(process)), notify_(std::move(notify)), log_(std::move(log)) {}

  const pid_t pid_;
  const UniqueFd process_;  // a pidfd
  const UniqueFd notify_;   // where sd_notify() sends
  const std::string log_;
  int exit_code_ = -1;
};

}  // namespace kernix
