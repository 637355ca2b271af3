// SPDX-License-Identifier: Apache-2.0
//
// Starts a kernixd that outlives this process.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/connection/client_environment.h"
#include "common/os/unique_fd.h"

namespace kernix {

struct DaemonCommand {
  std::string program;
  std::vector<std::string> arguments;  // without the program's name
  std::map<std::string, std::string> environment;
  std::string log;  // stdout and stderr are appended here; created with mode 0600 if missing
  int socket = -1;  // becomes descriptor kInheritedSocket; negative: none
};

inline constexpr int kInheritedSocket = 3;

// Keeps running when this object is destroyed.
class DaemonProcess {
 public:
  // Starts it in its own session, in the folder "/", with stdin from /dev/null. It inherits nothing else: no
  // descriptor, no signal setting, and only the given environment.
  static absl::StatusOr<DaemonProcess> Start(const DaemonCommand& command);

  // The same for a daemon that leaves this process, which then need not collect it: $KERNIX_STARTED_BY_CLIENT has
  // kernixd go on in a child of its own, and tell its exit code through kInheritedSocket.
  static absl::StatusOr<DaemonProcess> StartDetached(DaemonCommand command);

  // Returns the exit code if the daemon has ended, or 128 + the signal if a signal killed it (128 alone if that is not
  // known). Does not wait.
  std::optional<int> ExitCode();

 private:
  DaemonProcess(pid_t pid, UniqueFd report) : pid_(pid), report_(std::move(report)) {}

  pid_t pid_;        // of our child; 0: it has been collected
  UniqueFd report_;  // of a detached daemon
  std::optional<int> exit_code_;
};

// The part of our environment that a daemon of this user receives: the variables that locate the user's folders, and
// the settings that kernixd itself reads. Never PATH, LD_* or variables of compilers, because requests say which tools
// to use.
std::map<std::string, std::string> DaemonEnvironment(const GetEnv& get_env);

}  // namespace kernix
