// SPDX-License-Identifier: Apache-2.0
//
// Starts a kernixd that outlives this process.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/connection/client_environment.h"

namespace kernix {

struct DaemonCommand {
  std::string program;
  std::vector<std::string> arguments;  // without the program's name
  std::map<std::string, std::string> environment;
  std::string log;  // stdout and stderr are appended here; created with mode 0600 if missing
  int socket = -1;  // becomes descriptor kInheritedSocket; negative: none
};

inline constexpr int kInheritedSocket = 3;

// A child process, which keeps running when this object is destroyed.
class DaemonProcess {
 public:
  // Starts it in its own session, in the folder "/", with stdin from /dev/null. It inherits nothing else: no
  // descriptor, no signal setting, and only the given environment.
  static absl::StatusOr<DaemonProcess> Start(const DaemonCommand& command);

  // Returns the exit code if the process has ended, or 128 + the signal if a signal killed it. Does not wait.
  std::optional<int> ExitCode();

  pid_t pid() const { return pid_; }

 private:
  explicit DaemonProcess(pid_t pid) : pid_(pid) {}
  pid_t pid_;
  std::optional<int> exit_code_;
};

// Collects daemons of this process that have ended, so that they do not remain as zombies.
void ReapEndedDaemons();

// The part of our environment that a daemon of this user receives: the variables that locate the user's folders, and
// the settings that kernixd itself reads. Never PATH, LD_* or variables of compilers, because requests say which tools
// to use.
std::map<std::string, std::string> DaemonEnvironment(const GetEnv& get_env);

}  // namespace kernix
