// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/daemon.h"

#include <grpc/grpc.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/version.h"
#include "common/os/folders.h"
#include "common/os/systemd.h"
#include "daemon/app/daemon_folders.h"
#include "daemon/transport/accept_loop.h"
#include "daemon/transport/local_user.h"

namespace kernix::server {
namespace {

// How long to wait for an exiting daemon.
constexpr Duration kPatience{10'000};
// How long cancelled loads may take to report that, and other calls to answer. Unused connections make gRPC wait for
// all of this time.
constexpr Duration kLastWords{200};
constexpr Duration kDrainRound{50};
// How often to look for the socket and the store if changes cannot be watched.
constexpr Duration kCheckOwnFiles{1'000};
// The time from the answer to a client until it has opened the artifact, on a busy machine.
constexpr Duration kLendTime{30'000};

KernixdExit CodeForStore(const absl::Status& status) {
  if (absl::IsInvalidArgument(status)) return kExitUsage;
  return absl::IsUnavailable(status) ? kExitAlreadyRunning : kExitStoreUnusable;
}

KernixdExit CodeForSocket(const absl::Status& status) {
  if (absl::IsInvalidArgument(status)) return kExitUsage;
  return absl::IsAlreadyExists(status) ? kExitAlreadyRunning : kExitFailure;
}

// A connection has its own descriptor and the accept loop's.
int Capacity(const ServerOptions& options) {
  constexpr int kDescriptors = 2;
  return ConnectionCapacity(kDescriptors + (options.shared ? Relay::kDescriptors : 0));
}

// Connections that are kept for lookups must leave room for others.
LookupOptions LookupLimits(const ServerOptions& options) {
  constexpr int kShare = 8;
  LookupOptions lookups;
  lookups.max_kept = std::min(lookups.max_kept, Capacity(options) / kShare);
  const int most = options.BoundsPerUser().connections;
  if (most > 0) lookups.max_kept_per_user = std::min(lookups.max_kept_per_user, most / kShare);
  return lookups;
}

// Whether a store cannot be written or, if there is none, made.
bool IsClosed(std::string path) {
  while (access(path.c_str(), F_OK) != 0 && errno == ENOENT && path != "/") path = Dirname(path);
  return access(path.c_str(), W_OK) != 0 && (errno == EACCES || errno == EROFS);
}

KernixdExit CodeForUsage(const absl::Status&) { return kExitUsage; }

}  // namespace

Daemon::Daemon(Env& env, ServerOptions options, ReadOptions read, StopSignals signals)
    : env_(env),
      live_(std::move(options), std::move(read)),
      options_(live_.started()),
      callers_(
          env,
          {.shared = options_.shared, .unknown_users = options_.unknown_users, .admin_group = options_.admin_group}),
      signals_(std::move(signals)),
      // A shared kernixd runs registered compilers only.
      registry_(env, options_.shared ? "host_compiler" : "CXX", options_.toolchain_description) {}

Daemon::~Daemon() { SetLogWatcher(nullptr); }

KernixdExit Daemon::Run() {
  absl::Status status = OpenLog();
  if (status.ok()) status = oneshot() ? StartOneshot() : Start();
  if (status.ok()) return Stop(WaitForStop());
  Log(LogLevel::kError, "start_failed", {{"error", status.message()}, {"exit_code", static_cast<int>(start_failure_)}});
  return start_failure_;
}

// --- Start -----------------------------------------------------------------------------------------------------------

absl::Status Daemon::Start() {
  KERNIX_RETURN_IF_ERROR(Note(CodeForUsage, CheckGroups()));
  KERNIX_RETURN_IF_ERROR(Note(CodeForUsage, CheckSandbox(options_, options_.found_sandbox)));
  KERNIX_RETURN_IF_ERROR(Note(CodeForUsage, OpenSharing()));
  KERNIX_RETURN_IF_ERROR(Note(CodeForStore, FindStore()));
  KERNIX_RETURN_IF_ERROR(Note(CodeForSocket, FindSocket()));
  if (!options_.shared) RemoveDeadRunFolders(env_, Dirname(socket_));
  KERNIX_RETURN_IF_ERROR(Note(CodeForStore, OpenStore()));
  parts_->CheckToolchains(options_);
  KERNIX_RETURN_IF_ERROR(Note(CodeForSocket, Listen()));
  return Serve(listener_->fd(), UniqueFd());
}

absl::Status Daemon::OpenLog() {
  if (options_.log_file.empty()) return absl::OkStatus();
  log_file_.emplace(options_.log_file, STDERR_FILENO);
  SetLogWatcher([this](size_t bytes) { log_file_->Wrote(bytes); });
  return log_file_->Open();
}

absl::Status Daemon::CheckGroups() const {
  return options_.admin_group.empty() ? absl::OkStatus() : GroupId("admin_group", options_.admin_group).status();
}

absl::Status Daemon::OpenSharing() {
  KERNIX_ASSIGN_OR_RETURN(sharing_, Sharing::Open(env_, options_));
  return absl::OkStatus();
}

absl::Status Daemon::StartOneshot() {
  UniqueFd connection(options_.oneshot_fd);
  KERNIX_RETURN_IF_ERROR(Note(CodeForUsage, PeerOf(connection.get()).status()));
  KERNIX_RETURN_IF_ERROR(Note(CodeForUsage, OpenSharing()));
  KERNIX_RETURN_IF_ERROR(Note(CodeForStore, FindStore()));
  KERNIX_RETURN_IF_ERROR(Note(CodeForStore, OpenStore()));
  return Serve(/*listener=*/-1, std::move(connection));
}

absl::Status Daemon::Note(ExitCodeOf exit_code_of, absl::Status status) {
  if (!status.ok()) start_failure_ = exit_code_of(status);
  return status;
}

absl::Status Daemon::FindStore() {
  KERNIX_ASSIGN_OR_RETURN(StoreList stores,
                          UserStores(env_, ProcessGetEnv, geteuid(), "store_directory", options_.store_directory));
  store_ = std::move(stores.written);
  read_stores_ = std::move(stores.read);
  if (!stores.warning.empty()) Log(LogLevel::kWarning, "place_taken", {{"reason", stores.warning}});
  const bool can_do_without = options_.started_by_client || env_.Stat(StrCat(store_, "/version")).ok();
  return can_do_without && !options_.shared && IsClosed(store_) ? WriteElsewhere() : absl::OkStatus();
}

// A store in an image, say, or in a home that cannot be written, is only read. The run folder has room for one that is
// written.
absl::Status Daemon::WriteElsewhere() {
  KERNIX_ASSIGN_OR_RETURN(const RunFolder folder, RunFolderForStore(env_, ProcessGetEnv, geteuid(), store_));
  unwritable_store_ = std::exchange(store_, folder.directory + "/store");
  read_stores_.insert(read_stores_.begin(), unwritable_store_);
  Log(LogLevel::kWarning, "store_only_read", {{"store", unwritable_store_}, {"written", store_}});
  return absl::OkStatus();
}

// Takes the socket from systemd, or locks the run folder to listen in.
absl::Status Daemon::FindSocket() {
  KERNIX_ASSIGN_OR_RETURN(listener_, Listener::FromSystemd(env_));
  if (listener_ != nullptr) return absl::OkStatus();
  KERNIX_ASSIGN_OR_RETURN(socket_, SocketPath());
  KERNIX_ASSIGN_OR_RETURN(socket_lock_, ClaimSocket(env_, socket_, kPatience));
  return absl::OkStatus();
}

absl::StatusOr<std::string> Daemon::SocketPath() {
  if (!options_.socket.empty()) return options_.socket;
  if (options_.shared) return std::string(kServiceSocket);
  KERNIX_ASSIGN_OR_RETURN(const RunFolder folder, RunFolderForStore(env_, ProcessGetEnv, geteuid(), store_));
  if (!folder.warning.empty()) Log(LogLevel::kWarning, "place_taken", {{"reason", folder.warning}});
  return folder.socket;
}

absl::Status Daemon::OpenStore() {
  KERNIX_ASSIGN_OR_RETURN(auto cache,
                          cache::Cache::Open(env_, {.directory = store_,
                                                    .limit_bytes = options_.cache_limit_bytes,
                                                    .lend_time = kLendTime,
                                                    .socket = listener_ ? listener_->path() : socket_,
                                                    .read_directories = read_stores_,
                                                    .stands_in_for = unwritable_store_,
                                                    .limit_bytes_per_user = options_.cache_limit_per_user}));
  Log(LogLevel::kInfo, "start",
      {{"version", Version()},
       {"build", BuildId()},
       {"pid", getpid()},
       {"uid", geteuid()},
       {"store", StoreList{store_, read_stores_}.Text()},
       {"sandbox", exec::RungName(options_.found_sandbox.rung)},
       {"sandbox_lack", options_.found_sandbox.lack},
       {"shared", options_.shared ? "true" : "false"}});
  parts_ = std::make_unique<DaemonParts>(env_, options_, registry_, std::move(cache), std::move(sharing_), stop_,
                                         [this] { return Reload(); });
  return absl::OkStatus();
}

absl::Status Daemon::Listen() {
  if (listener_ == nullptr) {
    const ListenerOptions options = {.path = socket_, .for_group = options_.shared, .group = options_.socket_group};
    KERNIX_ASSIGN_OR_RETURN(listener_, Listener::Bind(env_, options));
  }
  Log(LogLevel::kInfo, "listen", {{"socket", listener_->path()}});
  return absl::OkStatus();
}

absl::Status Daemon::Serve(int listener, UniqueFd connection) {
  KERNIX_ASSIGN_OR_RETURN(lookups_, LookupServer::Start(parts_->backend(), LookupLimits(options_)));
  if (options_.shared) {
    KERNIX_ASSIGN_OR_RETURN(relay_, Relay::Start(env_));
  }
  servers_ = std::make_unique<PeerServers>(parts_->backend(), callers_, *lookups_, relay_.get());
  ConnectionQuota quota(options_.BoundsPerUser().connections, Capacity(options_));
  std::function<void()> all_closed;
  if (oneshot()) all_closed = [this] { stop_.Set("the connection closed"); };
  KERNIX_ASSIGN_OR_RETURN(accept_loop_, AcceptLoop::Start(env_, listener, std::move(connection), std::move(quota),
                                                          *servers_, std::move(all_closed)));
  std::vector<std::string> files = parts_->cache().Files();
  if (listener_ != nullptr) files.push_back(listener_->path());
  own_files_watch_.emplace(std::move(files));
  Log(LogLevel::kInfo, "ready");
  NotifySystemd("READY=1");
  return absl::OkStatus();
}

// --- Serve -----------------------------------------------------------------------------------------------------------

StopReason Daemon::WaitForStop() {
  IdleMonitor idle(oneshot() ? Duration{0} : options_.idle_timeout, env_.Now());
  while (true) {
    idle.SetTimeout(oneshot() ? Duration{0} : live_.Latest().idle_timeout);
    WaitForEvent(idle.Pause(env_.Now()));
    if (const std::optional<std::string> signal = NextStopSignal()) return {.text = *signal};
    if (std::optional<StopReason> reason = stop_.Get()) return *std::move(reason);
    if (const std::string lost = FirstLost(); !lost.empty())
      return {.text = lost + " was removed or exchanged, or became read-only"};
    if (idle.Step(CurrentActivity(), env_.Now())) return {.text = "idle"};
    parts_->Flush();
    LogLeftOut();
    KeepLogSmall();
    if (CurrentActivity().running == 0) ReturnMemory();
  }
}

void Daemon::KeepLogSmall() {
  const absl::Status kept = log_file_ ? log_file_->Step() : absl::OkStatus();
  if (!kept.ok()) Log(LogLevel::kWarning, "log_not_shortened", {{"error", kept.message()}});
}

// SIGHUP reloads the config file, and stops a daemon without one: its terminal is gone.
std::optional<std::string> Daemon::NextStopSignal() {
  std::optional<std::string> signal = signals_.Next();
  while (signal == "SIGHUP" && live_.can_reload()) {
    Reload().IgnoreError();  // logged
    signal = signals_.Next();
  }
  return signal;
}

absl::StatusOr<v1::ReloadResponse> Daemon::Reload() {
  return live_.Reload([this](const ServerOptions& fresh) {
    SetLogLevel(fresh.log_level);
    parts_->Apply(fresh);
  });
}

void Daemon::WaitForEvent(Duration timeout) {
  if (own_files_watch_->events() < 0) timeout = std::min(timeout, kCheckOwnFiles);
  std::array<pollfd, 4> fds = {pollfd{signals_.fd(), POLLIN, 0}, pollfd{stop_.fd(), POLLIN, 0},
                               pollfd{own_files_watch_->events(), POLLIN, 0},
                               pollfd{own_files_watch_->mounts(), POLLPRI, 0}};
  poll(fds.data(), fds.size(), static_cast<int>(timeout.count()));
  if (fds[2].revents != 0 || fds[3].revents != 0) own_files_watch_->Renew();
}

// Without its socket, nobody reaches the daemon, but it keeps the store from others; without its store it serves
// nobody. The next daemon makes both anew.
std::string Daemon::FirstLost() const {
  std::string lost = listener_ == nullptr ? "" : listener_->file().FirstLost();
  return lost.empty() ? parts_->cache().FirstLost() : lost;
}

Activity Daemon::CurrentActivity() {
  Activity activity = accept_loop_->activity();
  activity.running = std::max(0, activity.running - lookups_->kept());  // both change at their own times
  activity.started += lookups_->asked();
  const exec::ExecutorLoad load = parts_->backend().executor.load();
  activity.running +=
      gate().inside() + load.running + load.queued + static_cast<int>(parts_->backend().builder.LessonsLeft());
  return activity;
}

// --- Stop ------------------------------------------------------------------------------------------------------------

KernixdExit Daemon::Stop(const StopReason& reason) {
  const std::string lost = FirstLost();
  const Duration timeout = reason.drain_timeout.count() > 0 ? reason.drain_timeout : live_.Latest().drain_timeout;
  Log(LogLevel::kInfo, "drain",
      {{"reason", reason.text}, {"running_loads", gate().inside()}, {"timeout_ms", timeout.count()}});
  NotifySystemd("STOPPING=1");
  servers_->SetServing(false);  // first: whoever finds the gate closed finds that this is known
  gate().Close();
  lookups_->Stop();
  const bool drained = Drain(env_.Now() + timeout);
  CloseDoors();
  if (!parts_->cache().FirstLost().empty()) LeaveStoreAlone();
  parts_->Flush();
  parts_.reset();
  LogLeftOut(/*all=*/true);
  Log(LogLevel::kInfo, "stop", {{"drained", drained ? "true" : "false"}});
  if (!drained) return kExitDrainTimeout;
  return lost.empty() ? kExitOk : kExitFailure;  // whoever supervises it starts another
}

// Somebody may be removing the store just now, and would be disturbed if its files disappear by themselves.
void Daemon::LeaveStoreAlone() {
  LogLeftOut(/*all=*/true);
  Log(LogLevel::kInfo, "stop", {{"store", "lost"}});
  _exit(kExitFailure);
}

// Waits for the running loads. A second signal ends the wait. Returns false if some loads had to be cancelled.
bool Daemon::Drain(MonotonicTime deadline) {
  while (!gate().WaitUntilEmpty(std::min(deadline, env_.Now() + kDrainRound))) {
    const std::optional<std::string> signal = NextStopSignal();
    if (!signal && env_.Now() < deadline) continue;
    Log(LogLevel::kWarning, "drain_cut_short",
        {{"running_loads", gate().inside()}, {"reason", signal ? *signal : "time is up"}});
    gate().CancelAll();
    gate().WaitUntilEmpty(env_.Now() + kLastWords);
    return false;
  }
  return true;
}

// Removes the socket's name first, so that new clients look elsewhere; then closes the connections.
void Daemon::CloseDoors() {
  accept_loop_->Stop();
  listener_.reset();
  // gRPC waits for clients that do not read what it says: as long as they are there, and ten seconds in its own end,
  // which therefore does not come.
  if (relay_ != nullptr) relay_->Stop(env_.Now() + kLastWords);
  grpc_init();
  servers_->Shutdown(kLastWords);
  gate().WaitUntilEmpty(MonotonicTime::max());  // for workers that gRPC no longer tracks
}

}  // namespace kernix::server
