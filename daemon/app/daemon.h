// SPDX-License-Identifier: Apache-2.0
//
// A daemon, from start to end.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/os/env.h"
#include "common/os/unique_fd.h"
#include "common/wire/kernixd_exit.h"
#include "daemon/app/daemon_folders.h"
#include "daemon/app/daemon_parts.h"
#include "daemon/app/options.h"
#include "daemon/app/own_process.h"
#include "daemon/rpc/lookup_server.h"
#include "daemon/toolchain/toolchain.h"
#include "daemon/transport/accept_loop.h"
#include "daemon/transport/listener.h"
#include "daemon/transport/local_user.h"
#include "daemon/transport/peer_servers.h"
#include "daemon/transport/relay.h"

namespace kernix::server {

// starting -> serving -> draining -> stopped, each once; a failed start is final.
class Daemon {
 public:
  // `env` must outlive the daemon.
  Daemon(Env& env, ServerOptions options, ReadOptions read, StopSignals signals);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  // Runs the daemon's whole life. Blocks; returns the process's exit code. Must be called only once.
  KernixdExit Run();

 private:
  using ExitCodeOf = KernixdExit (*)(const absl::Status& status);

  // --- Start: each step sets the exit code for its failure.
  absl::Status Start();
  absl::Status OpenLog();
  absl::Status CheckGroups() const;
  absl::Status OpenSharing();
  absl::Status StartOneshot();
  absl::Status Note(ExitCodeOf exit_code_of, absl::Status status);
  absl::Status FindStore();
  absl::Status WriteElsewhere();
  absl::Status FindSocket();
  absl::StatusOr<std::string> SocketPath();
  absl::Status OpenStore();
  absl::Status Listen();
  absl::Status Serve(int listener, UniqueFd connection);

  // --- Serve
  StopReason WaitForStop();
  std::optional<std::string> NextStopSignal();
  absl::StatusOr<v1::ReloadResponse> Reload();
  void KeepLogSmall();
  void WaitForEvent(Duration timeout);
  std::string FirstLost() const;
  Activity CurrentActivity();

  // --- Stop
  KernixdExit Stop(const StopReason& reason);
  bool Drain(MonotonicTime deadline);
  void CloseDoors();
  [[noreturn]] static void LeaveStoreAlone();

  bool oneshot() const { return options_.oneshot_fd >= 0; }
  LoadGate& gate() { return parts_->backend().gate; }

  Env& env_;
  LiveOptions live_;
  const ServerOptions& options_;  // as started
  Callers callers_;
  StopSignals signals_;
  StopRequest stop_;
  KernixdExit start_failure_ = kExitFailure;
  std::optional<LogFile> log_file_;
  std::string store_;
  std::vector<std::string> read_stores_;
  std::string unwritable_store_;  // which `store_` stands in for; empty: none
  std::string socket_;
  // Each member needs those above it.
  toolchain::ToolchainRegistry registry_;
  std::unique_ptr<FileLock> socket_lock_;
  std::unique_ptr<Sharing> sharing_;  // until the parts have it
  std::unique_ptr<DaemonParts> parts_;
  std::unique_ptr<LookupServer> lookups_;
  std::unique_ptr<Relay> relay_;  // of a shared daemon
  std::unique_ptr<PeerServers> servers_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<AcceptLoop> accept_loop_;
  std::optional<OwnFilesWatch> own_files_watch_;
};

}  // namespace kernix::server
