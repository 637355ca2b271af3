// SPDX-License-Identifier: Apache-2.0
//
// Starting a kernixd that outlives us.
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
  std::string log;  // stdout and stderr are appended here; made with mode 0600 when absent
  int socket = -1;  // becomes descriptor kInheritedSocket; negative: none
};

inline constexpr int kInheritedSocket = 3;

// A child process. It is not ended when this goes. Call only inside a ForkGate::Section.
class DaemonProcess {
 public:
  // In a session of its own, in the folder "/", stdin from /dev/null, nothing else of ours inherited: no descriptor, no
  // signal setting, no environment but the one given.
  static absl::StatusOr<DaemonProcess> Start(const DaemonCommand& command);

  // Its exit code when it has ended, 128 + the signal when one killed it. Does not wait.
  std::optional<int> ExitCode();

  pid_t pid() const { return pid_; }

 private:
  explicit DaemonProcess(pid_t pid) : pid_(pid) {}
  pid_t pid_;
  std::optional<int> exit_code_;
};

// Collects those of our daemons that have ended, so that they do not stay as zombies.
void ReapEndedDaemons();

// What a daemon of this user gets to see of our environment: what says where its user's things are, and the settings
// that kernixd itself reads. Never PATH, LD_* or what compilers read: requests say which tools to use.
std::map<std::string, std::string> DaemonEnvironment(const GetEnv& get_env);

}  // namespace kernix
