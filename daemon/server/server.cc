// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/server.h"

#include <poll.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/base/log.h"
#include "daemon/base/paths.h"
#include "daemon/base/status_macros.h"
#include "daemon/base/strings.h"
#include "daemon/base/version.h"
#include "daemon/server/accept_loop.h"
#include "daemon/server/engine.h"
#include "daemon/server/grpc_log.h"
#include "daemon/server/idle_monitor.h"
#include "daemon/server/listener.h"
#include "daemon/server/peer_servers.h"
#include "daemon/server/stop_request.h"
#include "daemon/server/stop_signals.h"

namespace kernix::server {
namespace {

// How long a daemon that is on its way out is waited for.
constexpr Duration kPatience{10'000};
// How long a call may take to send its last words once no load runs.
constexpr std::chrono::seconds kLastWords{2};
constexpr Duration kDrainRound{50};
// Each client needs two descriptors and each job a few.
constexpr rlim_t kWantedDescriptors = 65'536;

// What kept a daemon from serving, and the exit code that says so.
struct StartFailure {
  ExitCode exit_code;
  absl::Status status;
};

ExitCode CodeForStore(const absl::Status& status) {
  return absl::IsUnavailable(status) ? kExitAlreadyRunning : kExitStoreUnusable;
}

ExitCode CodeForSocket(const absl::Status& status) {
  if (absl::IsAlreadyExists(status)) return kExitAlreadyRunning;
  return absl::IsInvalidArgument(status) ? kExitUsage : kExitFailure;
}

void RaiseDescriptorLimit() {
  struct rlimit limit {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kWantedDescriptors) return;
  limit.rlim_cur = std::min(limit.rlim_max, kWantedDescriptors);
  setrlimit(RLIMIT_NOFILE, &limit);
}

class Daemon {
 public:
  Daemon(Env& env, const ServerOptions& options, StopSignals signals)
      : env_(env), options_(options), signals_(std::move(signals)) {}

  // Serves until it is told to stop, or has been idle for long enough.
  int Run() {
    const std::optional<StartFailure> failure = options_.oneshot_fd >= 0 ? StartOneshot() : Start();
    if (failure) {
      Log(LogLevel::kError, "start_failed",
          {{"error", failure->status.message()}, {"exit_code", static_cast<int>(failure->exit_code)}});
      return failure->exit_code;
    }
    const StopReason reason = WaitForStop();
    return Stop(reason);
  }

 private:
  // --- Start -------------------------------------------------------------------------------------------------------
  std::optional<StartFailure> Start() {
    const absl::StatusOr<std::string> store = StoreDirectory();
    if (!store.ok()) return StartFailure{kExitStoreUnusable, store.status()};
    if (const absl::Status status = FindSocket(*store); !status.ok())
      return StartFailure{CodeForSocket(status), status};
    if (const absl::Status status = MakeEngine(*store); !status.ok()) return StartFailure{CodeForStore(status), status};
    engine_->CheckRegisteredToolchains(options_.toolchains);
    if (const absl::Status status = Listen(); !status.ok()) return StartFailure{CodeForSocket(status), status};
    return Serve(listener_->fd(), UniqueFd());
  }

  std::optional<StartFailure> StartOneshot() {
    UniqueFd connection(options_.oneshot_fd);
    const absl::StatusOr<Peer> peer = PeerOf(connection.get());
    if (!peer.ok()) return StartFailure{kExitUsage, peer.status()};
    const absl::StatusOr<std::string> store = StoreDirectory();
    if (!store.ok()) return StartFailure{kExitStoreUnusable, store.status()};
    if (const absl::Status status = MakeEngine(*store); !status.ok()) return StartFailure{CodeForStore(status), status};
    return Serve(/*listener=*/-1, std::move(connection));
  }

  absl::StatusOr<std::string> StoreDirectory() {
    if (!options_.store_directory.empty()) return options_.store_directory;
    return DefaultStoreDirectory(env_, ProcessGetEnv, geteuid());
  }

  // Takes what systemd hands over, or the lock of the place where we shall listen.
  absl::Status FindSocket(const std::string& store) {
    KERNIX_ASSIGN_OR_RETURN(listener_, Listener::FromSystemd(env_));
    if (listener_ != nullptr) return absl::OkStatus();
    KERNIX_ASSIGN_OR_RETURN(socket_path_, SocketPath(store));
    KERNIX_ASSIGN_OR_RETURN(socket_lock_, ClaimSocket(env_, socket_path_, kPatience));
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> SocketPath(const std::string& store) {
    if (!options_.socket.empty()) return options_.socket;
    if (options_.shared) return std::string(kServiceSocket);
    KERNIX_ASSIGN_OR_RETURN(const DaemonPlace place, PlaceForStore(env_, ProcessGetEnv, geteuid(), store));
    return place.socket;
  }

  absl::Status MakeEngine(const std::string& store) {
    KERNIX_ASSIGN_OR_RETURN(auto cache,
                            cache::Cache::Open(env_, {.directory = store, .limit_bytes = options_.cache_limit_bytes}));
    Log(LogLevel::kInfo, "start",
        {{"version", Version()},
         {"build", BuildId()},
         {"pid", getpid()},
         {"uid", geteuid()},
         {"store", store},
         {"shared", options_.shared ? "true" : "false"}});
    engine_ = std::make_unique<Engine>(env_, options_, std::move(cache), stop_);
    return absl::OkStatus();
  }

  absl::Status Listen() {
    if (listener_ == nullptr) {
      const ListenerOptions options = {
          .path = socket_path_, .for_group = options_.shared, .group = options_.socket_group};
      KERNIX_ASSIGN_OR_RETURN(listener_, Listener::Bind(env_, options));
    }
    Log(LogLevel::kInfo, "listen", {{"socket", listener_->path()}});
    return absl::OkStatus();
  }

  std::optional<StartFailure> Serve(int listener, UniqueFd connection) {
    servers_ = std::make_unique<PeerServers>(engine_->backend());
    AcceptHandler handler;
    handler.admit = [this](const Peer& peer) { return Admit(peer); };
    handler.serve = [this](UniqueFd fd, const Peer& peer) { servers_->Serve(std::move(fd), peer); };
    if (options_.oneshot_fd >= 0) handler.all_closed = [this] { stop_.Set("the connection closed"); };
    absl::StatusOr<std::unique_ptr<AcceptLoop>> loop =
        AcceptLoop::Start(listener, std::move(connection), std::move(handler));
    if (!loop.ok()) return StartFailure{kExitFailure, loop.status()};
    accept_loop_ = *std::move(loop);
    Log(LogLevel::kInfo, "ready");
    sd_notify(/*unset_environment=*/0, "READY=1");
    return std::nullopt;
  }

  // Who may connect to the socket of a shared daemon is the socket's mode to say.
  absl::Status Admit(const Peer& peer) const {
    if (options_.shared || Backend::MayAdminister(peer.uid)) return absl::OkStatus();
    return absl::PermissionDeniedError(StrCat("this kernixd serves uid ", geteuid(), " and root only"));
  }

  // --- Run ---------------------------------------------------------------------------------------------------------
  StopReason WaitForStop() {
    IdleMonitor idle(options_.oneshot_fd >= 0 ? Duration{0} : options_.idle_timeout, env_.Now());
    while (true) {
      WaitForEvent(idle.Pause(env_.Now()));
      if (const std::optional<std::string> signal = signals_.Next()) return {.text = *signal};
      if (std::optional<StopReason> reason = stop_.Get()) return *std::move(reason);
      if (idle.Step(CurrentActivity(), env_.Now())) return {.text = "idle"};
      engine_->backend().cache.Flush().IgnoreError();  // it will be tried again, at the latest at the end
    }
  }

  void WaitForEvent(Duration timeout) {
    std::array<pollfd, 2> fds = {pollfd{signals_.fd(), POLLIN, 0}, pollfd{stop_.fd(), POLLIN, 0}};
    poll(fds.data(), fds.size(), static_cast<int>(timeout.count()));
  }

  Activity CurrentActivity() {
    Activity activity = accept_loop_->activity();
    const exec::ExecutorLoad load = engine_->backend().executor.load();
    activity.running += engine_->backend().gate.inside() + load.running + load.queued;
    return activity;
  }

  // --- Stop --------------------------------------------------------------------------------------------------------
  int Stop(const StopReason& reason) {
    const Duration timeout = reason.drain_timeout.count() > 0 ? reason.drain_timeout : options_.drain_timeout;
    LoadGate& gate = engine_->backend().gate;
    Log(LogLevel::kInfo, "drain",
        {{"reason", reason.text}, {"running_loads", gate.inside()}, {"timeout_ms", timeout.count()}});
    sd_notify(/*unset_environment=*/0, "STOPPING=1");
    gate.Close();
    servers_->SetServing(false);
    const bool drained = Drain(env_.Now() + timeout);
    CloseDoors();
    const absl::Status flushed = engine_->backend().cache.Flush();
    if (!flushed.ok()) Log(LogLevel::kWarning, "flush_failed", {{"error", flushed.message()}});
    engine_.reset();
    Log(LogLevel::kInfo, "stop", {{"drained", drained ? "true" : "false"}});
    socket_lock_.reset();
    return drained ? kExitOk : kExitDrainTimeout;
  }

  // Waits for the loads that run. Another signal means: at once. False when some had to be cancelled.
  bool Drain(MonotonicTime deadline) {
    LoadGate& gate = engine_->backend().gate;
    while (!gate.WaitUntilEmpty(std::min(deadline, env_.Now() + kDrainRound))) {
      const std::optional<std::string> signal = signals_.Next();
      if (!signal && env_.Now() < deadline) continue;
      Log(LogLevel::kWarning, "drain_cut_short",
          {{"running_loads", gate.inside()}, {"reason", signal ? *signal : "time is up"}});
      gate.CancelAll();
      gate.WaitUntilEmpty(MonotonicTime::max());
      return false;
    }
    return true;
  }

  // The name goes first, so that new clients look elsewhere; then the connections.
  void CloseDoors() {
    accept_loop_->Stop();
    listener_.reset();
    servers_->Shutdown(std::chrono::system_clock::now() + kLastWords);
  }

  Env& env_;
  const ServerOptions& options_;
  StopSignals signals_;
  StopRequest stop_;
  std::string socket_path_;
  // In the order in which each needs those above.
  std::unique_ptr<FileLock> socket_lock_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<PeerServers> servers_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<AcceptLoop> accept_loop_;
};

}  // namespace

int RunServer(Env& env, const ServerOptions& options) {
  SetLogLevel(options.log_level);
  RouteGrpcLog();
  RaiseDescriptorLimit();
  absl::StatusOr<StopSignals> signals = StopSignals::Take();
  if (!signals.ok()) {
    Log(LogLevel::kError, "start_failed", {{"error", signals.status().message()}});
    return kExitFailure;
  }
  return Daemon(env, options, *std::move(signals)).Run();
}

int Main(int argc, char** argv) {
  Env& env = Env::Posix();
  const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  const ParsedCommandLine parsed = ParseCommandLine(env, ProcessGetEnv, arguments);
  if (!parsed.exit_now) return RunServer(env, parsed.options);
  std::fputs(parsed.text.c_str(), parsed.exit_code == kExitOk ? stdout : stderr);
  return parsed.exit_code;
}

}  // namespace kernix::server
