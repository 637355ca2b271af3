// SPDX-License-Identifier: Apache-2.0
//
// Starts this user's daemon, and only one of it, however many clients ask.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "client/connection/caller.h"
#include "client/connection/client_environment.h"
#include "client/connection/daemon_process.h"
#include "client/connection/endpoint.h"
#include "client/connection/unix_socket.h"
#include "kernix/client.h"

namespace kernix {

// Whether `status` is an error of DaemonStarter after which a daemon without a place, over a socket pair, can still
// serve.
bool OneshotMayHelp(const absl::Status& status);

// Marks `status` as such an error.
absl::Status WithOneshotHelp(absl::Status status);

// For an endpoint of kind kOwn that has a place. If `caller` gives up, returns with some error: immediately, or as soon
// as a daemon that it has started holds the place.
class DaemonStarter {
 public:
  DaemonStarter(const ClientEnvironment& environment, const ClientOptions& options, const Endpoint& endpoint,
                Caller& caller);

  // Talks to a daemon over a new connection. An error for which DaemonWasLost() holds means that it has not answered.
  using Greet = std::function<absl::Status(PeerSocket)>;

  // Makes `greet` talk to a serving daemon, and returns what it returns. Of all clients that ask at a time, the one
  // that gets the start lock starts the daemon; the others connect as soon as it listens. If `unwanted` is set (a
  // process that is draining or of another build), makes that process stop first. UNREACHABLE errors carry the daemon's
  // exit code and last words; RESOURCE means that it cannot use its store.
  absl::Status Start(std::optional<pid_t> unwanted, const Greet& greet);

 private:
  absl::StatusOr<PeerSocket> ConnectToWanted(std::optional<pid_t> unwanted);
  absl::Status StartLocked(std::optional<pid_t> unwanted, const Greet& greet);
  absl::StatusOr<PeerSocket> AwaitPlace(std::optional<pid_t> unwanted, const UniqueFd& leaving);
  absl::Status AwaitAnswer(DaemonProcess process, size_t log_start, const Greet& greet);
  void AwaitHold(DaemonProcess& process);
  absl::Status JudgeExit(int exit_code, size_t log_start);
  void AskToStop(pid_t unwanted);
  bool PlaceIsFree();
  bool Pause(std::chrono::milliseconds pause);
  // The next pause is longer.
  bool PauseLonger(std::chrono::milliseconds& pause);

  const ClientEnvironment& environment_;
  const ClientOptions& options_;
  const Endpoint& endpoint_;
  Caller& caller_;
  MonotonicTime deadline_;
  std::string program_;
};

// The last lines that a daemon wrote to `log` after its first `start` bytes, indented, for a message. Empty if there
// are none.
std::string LastWords(Env& env, const std::string& log, size_t start);

// "exit code 3 (the store cannot be used)".
std::string DescribeExit(int exit_code);

}  // namespace kernix
