// SPDX-License-Identifier: Apache-2.0
//
// Finds the kernixd that a client starts, starts it detached from this process, and watches an ending one.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/connection/endpoint.h"
#include "common/os/unique_fd.h"

namespace kernix {

// Returns `named` (ClientOptions::kernixd), otherwise $KERNIXD, otherwise a kernixd near the file that contains this
// code (in its folder, in bin/ below it, or in ../bin), otherwise one on PATH. The result is the absolute path of an
// executable. UNREACHABLE lists the searched paths.
absl::StatusOr<std::string> FindKernixd(const ClientEnvironment& environment, const std::string& named);

// Starts the kernixctl beside that kernixd with these arguments, in the environment of `variables` ("NAME=value"), as
// nobody's child and without any output. kNotFound if there is none.
absl::Status StartKernixctl(const ClientEnvironment& environment, const ClientOptions& options,
                            const std::vector<std::string>& variables, const std::vector<std::string>& arguments);

struct DaemonCommand {
  std::string program;
  std::vector<std::string> arguments;  // without the program's name
  std::map<std::string, std::string> environment;
  std::string log;  // stdout and stderr are appended here; created with mode 0600 if missing
  int socket = -1;  // becomes descriptor kInheritedSocket; negative: none
};

inline constexpr int kInheritedSocket = 3;

// The exit code of a process that told nobody, as after a signal, or whose code went to other code of this process.
inline constexpr int kUnknownExit = 128;

class DaemonProcess {
 public:
  // Starts it as a child, in its own session, in the folder "/", with stdin from /dev/null. It inherits nothing else:
  // no descriptor, no signal setting, and only the given environment.
  static absl::StatusOr<DaemonProcess> Start(const DaemonCommand& command);

  // The same for a daemon that leaves this process, which then need not collect it: with $KERNIX_STARTED_BY_CLIENT,
  // kernixd goes on in its own child, and reports its exit code through kInheritedSocket.
  static absl::StatusOr<DaemonProcess> StartDetached(DaemonCommand command);

  // A detached daemon keeps running. Its parent, our child, ends at once; any other daemon ends when its connection is
  // destroyed, before this object.
  ~DaemonProcess() { AwaitChild(); }
  DaemonProcess(DaemonProcess&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)), report_(std::move(other.report_)), exit_code_(other.exit_code_) {}
  DaemonProcess& operator=(DaemonProcess&&) = delete;

  // Returns the exit code if the daemon has ended, or 128 + the signal if a signal killed it, or kUnknownExit. Does not
  // wait.
  std::optional<int> ExitCode();

  // Waits until our child has ended, for a second at most. Returns the exit code as far as it is known.
  std::optional<int> AwaitChild();

 private:
  explicit DaemonProcess(pid_t pid) : pid_(pid) {}

  pid_t pid_;        // of our child; 0: it has been collected
  UniqueFd report_;  // of a detached daemon
  std::optional<int> exit_code_;
};

// The part of our environment that a daemon of this user receives: the variables that locate the user's folders, and
// the settings that kernixd itself reads. Never PATH, LD_* or variables of compilers, because requests say which tools
// to use.
std::map<std::string, std::string> DaemonEnvironment(const GetEnv& get_env);

// Stops a daemon that nobody can connect to, or that hangs, and detects when one that was asked to stop is gone.
//
// Create it while the daemon is running. Watches the daemon's process. If that is invisible, as in another process
// namespace, watches its socket instead. It does not connect, because systemd would start the next daemon.
class DaemonWatch {
 public:
  // `pid` is the process id that the daemon of `endpoint` reports, or the holder of its store. Keeps references to the
  // first two arguments.
  DaemonWatch(const ClientEnvironment& environment, const Endpoint& endpoint, pid_t pid);

  // Sends SIGTERM to it. The daemon drains for its `drain_timeout`, and stops at once if it is draining already.
  absl::Status Terminate() const;

  // Ends it if it has not even taken that signal.
  void KillIfDeaf() const;

  // Whether the daemon has ended, even if another one has its run folder by now.
  bool Gone() const;

 private:
  bool RunFolderIsLeft() const;

  const ClientEnvironment& environment_;
  const Endpoint& endpoint_;
  const pid_t pid_;
  pid_t listener_ = 0;
  UniqueFd process_;  // a pidfd
};

}  // namespace kernix
