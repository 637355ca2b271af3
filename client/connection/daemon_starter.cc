// SPDX-License-Identifier: Apache-2.0
#include "client/connection/daemon_starter.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/connection/daemon_process.h"
#include "client/connection/endpoint.h"
#include "client/connection/grpc_call.h"
#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/version.h"
#include "common/os/folders.h"
#include "common/os/fork_safety.h"
#include "common/wire/call_status.h"
#include "common/wire/kernixd_exit.h"

namespace kernix {
namespace {

using std::chrono::milliseconds;

constexpr char kOneshotHelps[] = "kernix/oneshot-may-help";
constexpr milliseconds kShortestPause{1};
constexpr milliseconds kLongestPause{20};
// A daemon that this process has started answers soon, and somebody waits for it.
constexpr milliseconds kPauseForAnswer{1};
// How much longer than the start timeout a stopping daemon may take: its usual drain timeout.
constexpr milliseconds kDrainTime{30'000};
constexpr milliseconds kProbeTimeout{10'000};
// A daemon takes milliseconds from its start to its lock, unless the machine is very busy.
constexpr milliseconds kHoldPatience{5'000};
// kernixd keeps its log below a larger limit as it runs; see KERNIX_LOG_FILE.
constexpr uint64_t kLogLimit = 1 << 20;

absl::Status Unreachable(const std::string& message) { return MakeError(v1::ErrorDetail::UNREACHABLE, message); }

absl::Status GivenUp() { return absl::AbortedError("nobody waits for the start any more"); }

// The current end of the log, to show the daemon's new lines later. A long log, or what cannot be one, becomes the
// previous one.
size_t LogStart(Env& env, const std::string& log) {
  const absl::StatusOr<FileInfo> info = env.Stat(log);
  if (!info.ok()) return 0;
  const bool is_log = info->type == FileType::kRegular && access(log.c_str(), W_OK) == 0;
  if (is_log && info->size <= kLogLimit) return info->size;
  const std::string previous = log + ".1";
  static_cast<void>(env.RemoveTree(previous));
  return env.Rename(log, previous).ok() ? 0 : info->size;
}

// Whether the process of a pidfd has ended. True if there is none.
bool HasEnded(const UniqueFd& process) {
  pollfd ended{process.get(), POLLIN, 0};
  return !process.ok() || poll(&ended, 1, 0) > 0;
}

// The last lines that a daemon wrote to `log` after its first `start` bytes, indented, for a message. Empty if there
// are none.
std::string LastWords(Env& env, const std::string& log, size_t start) {
  constexpr ptrdiff_t kLines = 5;
  const absl::StatusOr<std::string> text = env.ReadFile(log);
  if (!text.ok() || text->size() <= start) return "";
  std::vector<std::string> lines =
      absl::StrSplit(ToAbsl(std::string_view(*text).substr(start)), '\n', absl::SkipEmpty());
  if (std::ssize(lines) > kLines) lines.erase(lines.begin(), lines.end() - kLines);
  return lines.empty() ? "" : StrCat("\n  ", absl::StrJoin(lines, "\n  "));
}

// The last part of a message about a daemon.
std::string WhatItsLogSays(Env& env, const std::string& log, size_t start) {
  const std::string words = LastWords(env, log, start);
  return words.empty() ? StrCat("It has written nothing to its log, ", log)
                       : StrCat("Its log, ", log, ", ends with:", words);
}

// "exit code 3 (the store cannot be used)".
std::string DescribeExit(int exit_code) {
  if (exit_code == kUnknownExit) return "a signal or an exit code that is lost";
  if (exit_code > 128) return StrCat("signal ", exit_code - 128);
  constexpr std::pair<int, const char*> kMeanings[] = {{kExitFailure, "an unexpected failure"},
                                                       {kExitUsage, "it does not accept a setting"},
                                                       {kExitStoreUnusable, "it cannot use the store"},
                                                       {kExitAlreadyRunning, "another kernixd uses the store"},
                                                       {127, "the program cannot be run"}};
  for (const auto& [code, meaning] : kMeanings) {
    if (code == exit_code) return StrCat("exit code ", exit_code, " (", meaning, ")");
  }
  return StrCat("exit code ", exit_code);
}

// Starts this user's own daemon. Keeps references to its arguments.
class DaemonStarter {
 public:
  DaemonStarter(const ClientEnvironment& environment, const ClientOptions& options, const Endpoint& endpoint,
                Caller& caller)
      : environment_(environment),
        options_(options),
        endpoint_(endpoint),
        caller_(caller),
        deadline_(std::chrono::steady_clock::now() + options.start_timeout) {}

  absl::Status Start(std::optional<pid_t> unwanted, const Greet& greet) {
    KERNIX_ASSIGN_OR_RETURN(program_, FindKernixd(environment_, options_.kernixd));
    milliseconds pause = kShortestPause;
    do {
      absl::StatusOr<PeerSocket> peer = ConnectToWanted(unwanted);
      if (peer.ok()) return greet(*std::move(peer));
      if (absl::IsPermissionDenied(peer.status())) return peer.status();
      const auto lock = environment_.env->TryLockFile(endpoint_.run_folder.start_lock);
      if (lock.ok()) return StartLocked(unwanted, greet);
      if (!absl::IsUnavailable(lock.status())) return CannotLock(lock.status());
    } while (PauseLonger(pause));
    if (caller_.GaveUp()) return GivenUp();
    return Unreachable(StrCat("another process has been starting kernixd for ", options_.start_timeout.count(),
                              " ms without success. It holds ", endpoint_.run_folder.start_lock,
                              ": find it with `fuser ", endpoint_.run_folder.start_lock, "`, and end it if it hangs. ",
                              "kernixd's log is ", endpoint_.run_folder.log));
  }

 private:
  // Returns false if no time is left.
  bool Pause(milliseconds pause) { return std::chrono::steady_clock::now() < deadline_ && caller_.Pause(pause); }

  // The same; the next pause is longer.
  bool PauseLonger(milliseconds& pause) { return Pause(std::exchange(pause, std::min(2 * pause, kLongestPause))); }

  absl::StatusOr<PeerSocket> ConnectToWanted(std::optional<pid_t> unwanted) {
    KERNIX_ASSIGN_OR_RETURN(PeerSocket peer, ConnectTo(environment_, endpoint_));
    if (unwanted == peer.pid) return absl::NotFoundError("only the daemon to be replaced is listening");
    return peer;
  }

  // kUnavailable: somebody holds it.
  absl::Status CheckRunFolder() { return environment_.env->TryLockFile(endpoint_.run_folder.lock).status(); }

  bool RunFolderIsFree() { return CheckRunFolder().ok(); }

  static absl::Status CannotLock(const absl::Status& why) {
    const bool is_short = absl::IsResourceExhausted(why);  // of descriptors, or of room
    return WithOneshotHelp(Unreachable(StrCat("kernixd cannot be started: ", why.message(),
                                              is_short ? "" : ". Remove what is there, and kernixd makes it anew.")));
  }

  absl::Status StartLocked(std::optional<pid_t> unwanted, const Greet& greet) {
    // Another client may have started it before this one got the lock.
    absl::StatusOr<PeerSocket> peer = ConnectToWanted(unwanted);
    if (peer.ok()) return greet(*std::move(peer));
    UniqueFd leaving;  // a pidfd
    if (unwanted) {
      leaving.reset(static_cast<int>(syscall(SYS_pidfd_open, *unwanted, 0)));
      AskToStop(*unwanted);
    }
    peer = AwaitRunFolder(unwanted, leaving);
    if (peer.ok()) return greet(*std::move(peer));
    if (!absl::IsNotFound(peer.status())) return peer.status();

    DaemonCommand command{.program = program_, .environment = DaemonEnvironment(environment_.get_env)};
    command.log = endpoint_.run_folder.log;
    command.environment["KERNIX_LOG_FILE"] = command.log;
    command.arguments = {"--socket", endpoint_.socket, "--store-directory",
                         StoreList{endpoint_.store_directory, endpoint_.read_stores}.Text()};
    if (!command.environment.contains("KERNIX_IDLE_TIMEOUT")) {
      command.arguments.insert(command.arguments.end(), {"--idle-timeout", "15m"});
    }
    if (caller_.GaveUp()) return GivenUp();
    const size_t log_start = LogStart(*environment_.env, command.log);
    KERNIX_ASSIGN_OR_RETURN(DaemonProcess process, DaemonProcess::StartDetached(command));
    return AwaitAnswer(std::move(process), log_start, greet);
  }

  void AskToStop(pid_t unwanted) {
    absl::StatusOr<PeerSocket> peer = ConnectTo(environment_, endpoint_);
    if (!peer.ok() || peer->pid != unwanted) return;
    Http2Connection connection(std::move(peer->fd));
    v1::ShutdownRequest request;
    request.set_reason(StrCat("a client of build ", BuildId(), " replaces it"));
    v1::ShutdownResponse response;
    static_cast<void>(CallOnce(connection, "kernixd", "Shutdown", request, response, kProbeTimeout, caller_));
    deadline_ += kDrainTime;
  }

  // A daemon that has removed its socket may still be working on accepted loads. A daemon that another client has just
  // started may not listen yet. A daemon with another run folder (see ConnectTo) holds the store until its process
  // ends. Returns kNotFound if run folder and store are free.
  absl::StatusOr<PeerSocket> AwaitRunFolder(std::optional<pid_t> unwanted, const UniqueFd& leaving) {
    milliseconds pause = kShortestPause;
    do {
      absl::StatusOr<PeerSocket> peer = ConnectToWanted(unwanted);
      if (peer.ok()) return peer;
      if (HasEnded(leaving)) {
        const absl::Status is_free = CheckRunFolder();
        if (is_free.ok()) return absl::NotFoundError("nobody holds the run folder");
        if (!absl::IsUnavailable(is_free) && !absl::IsResourceExhausted(is_free)) return CannotLock(is_free);
      }
    } while (PauseLonger(pause));
    if (caller_.GaveUp()) return GivenUp();
    return Unreachable(StrCat("a kernixd that is stopping, or hangs, holds ", endpoint_.run_folder.lock,
                              " and has not released it within ", options_.start_timeout.count(),
                              " ms: try again when its builds are done, or find it with `fuser ",
                              endpoint_.run_folder.lock, "` and kill it. Its log is ", endpoint_.run_folder.log));
  }

  // The daemon may not answer for a moment, when other waiting clients fill its queue.
  absl::Status AwaitAnswer(DaemonProcess process, size_t log_start, const Greet& greet) {
    do {
      absl::StatusOr<PeerSocket> peer = ConnectTo(environment_, endpoint_);
      if (absl::IsPermissionDenied(peer.status())) return peer.status();
      if (peer.ok()) {
        absl::Status answered = greet(*std::move(peer));
        if (!DaemonWasLost(answered)) return answered;
      }
      if (const std::optional<int> exit_code = process.ExitCode()) {
        KERNIX_RETURN_IF_ERROR(JudgeExit(*exit_code, log_start));
      }
    } while (Pause(kPauseForAnswer));
    if (caller_.GaveUp()) {
      AwaitHold(process);
      return GivenUp();
    }
    const std::optional<pid_t> holder = HolderOf(environment_, endpoint_);
    return Unreachable(StrCat("kernixd", holder ? absl::StrCat(" (process ", *holder, ")") : "",
                              " was started but did not answer at ", endpoint_.socket, " within ",
                              options_.start_timeout.count(),
                              " ms: try again when the machine is less busy, or kill that process if it hangs. ",
                              WhatItsLogSays(*environment_.env, endpoint_.run_folder.log, log_start)));
  }

  // Returns OK if another daemon has the run folder: wait for it. A daemon that holds the store and listens nowhere
  // does not answer later either: kernixd itself has waited for its end.
  absl::Status JudgeExit(int exit_code, size_t log_start) {
    if (exit_code == kExitAlreadyRunning && !RunFolderIsFree()) return absl::OkStatus();
    const ErrorKind kind = exit_code == kExitStoreUnusable ? v1::ErrorDetail::RESOURCE : v1::ErrorDetail::UNREACHABLE;
    absl::Status status =
        MakeError(kind, StrCat("kernixd could not be started: ", program_, " ended with ", DescribeExit(exit_code),
                               ". ", WhatItsLogSays(*environment_.env, endpoint_.run_folder.log, log_start)));
    const bool run_folder_is_at_fault = exit_code == kExitFailure || exit_code == kExitAlreadyRunning;
    return run_folder_is_at_fault ? WithOneshotHelp(std::move(status)) : status;
  }

  // If the start lock were released before the daemon holds the run folder, the next client would start another daemon.
  void AwaitHold(DaemonProcess& process) {
    const MonotonicTime deadline = std::chrono::steady_clock::now() + kHoldPatience;
    while (RunFolderIsFree() && !process.ExitCode() && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(kShortestPause);
    }
  }

  const ClientEnvironment& environment_;
  const ClientOptions& options_;
  const Endpoint& endpoint_;
  Caller& caller_;
  MonotonicTime deadline_;
  std::string program_;
};

// The result of a start: a daemon, or an error and the exit code.
struct Attempt {
  absl::StatusOr<Oneshot> oneshot;
  std::optional<int> exit_code;
};

class ScratchStore {
 public:
  absl::StatusOr<std::string> Path(const ClientEnvironment& environment) {
    MutexLock lock(mutex_);
    if (owner_ == getpid()) return path_;  // a parent's folder is removed with the parent
    const std::string parent = environment.get_env("TMPDIR").value_or("/tmp");
    KERNIX_ASSIGN_OR_RETURN(path_, environment.env->CreateTempDirectory(JoinPath(parent, "kernix-oneshot-")));
    owner_ = getpid();
    [[maybe_unused]] static const int registered = std::atexit([] { PerProcess<ScratchStore>::Get().Remove(); });
    return path_;
  }

 private:
  void Remove() {
    MutexLock lock(mutex_);
    if (owner_ == getpid()) static_cast<void>(Env::Posix().RemoveTree(path_));
  }

  ForkSafeMutex mutex_;
  std::string path_ ABSL_GUARDED_BY(mutex_);
  pid_t owner_ ABSL_GUARDED_BY(mutex_) = 0;
};

// A file without a name: where no daemon can have a run folder, its log has none either.
struct NamelessLog {
  NamelessLog()
      : fd(AboveStandardStreams(UniqueFd(memfd_create("kernixd.log", MFD_CLOEXEC)))),
        path(StrCat("/proc/self/fd/", fd.get())) {}
  UniqueFd fd;
  std::string path;  // valid in this process, and in a child until it calls exec()
};

absl::Status EndedError(const std::string& program, int exit_code, const std::string& words) {
  const std::string said = words.empty() ? " and printed nothing" : StrCat(" and printed:", words);
  return MakeError(v1::ErrorDetail::UNREACHABLE,
                   StrCat(program, " --oneshot-fd ended with ", DescribeExit(exit_code), said));
}

absl::StatusOr<DaemonProcess> Launch(const ClientEnvironment& environment, const std::string& program,
                                     const std::string& store, const std::string& log, int socket) {
  DaemonCommand command{.program = program, .environment = DaemonEnvironment(environment.get_env)};
  command.arguments = {"--oneshot-fd", absl::StrCat(kInheritedSocket), "--store-directory", store};
  command.log = log;
  command.socket = socket;
  return DaemonProcess::Start(command);
}

Attempt TryStore(const ClientEnvironment& environment, const std::string& program, const std::string& store,
                 milliseconds timeout, Caller& caller) {
  auto sockets = MakeSocketPair();
  if (!sockets.ok()) return {sockets.status(), std::nullopt};
  const NamelessLog log;
  absl::StatusOr<DaemonProcess> process = Launch(environment, program, store, log.path, sockets->second.get());
  if (!process.ok()) return {process.status(), std::nullopt};
  sockets->second.reset();

  Oneshot oneshot{.daemon = std::make_unique<DaemonProcess>(*std::move(process)),
                  .connection = std::make_unique<Http2Connection>(std::move(sockets->first)),
                  .store_directory = store};
  v1::GetInfoResponse info;
  const std::string peer = StrCat(program, " --oneshot-fd");
  const absl::Status status =
      CallOnce(*oneshot.connection, peer, "GetInfo", v1::GetInfoRequest(), info, timeout, caller);
  if (status.ok()) return {std::move(oneshot), std::nullopt};
  oneshot.connection.reset();
  const std::optional<int> exit_code = oneshot.daemon->AwaitChild();
  const std::string words = LastWords(*environment.env, log.path, 0);
  if (exit_code) return {EndedError(program, *exit_code, words), exit_code};
  return {MakeError(v1::ErrorDetail::UNREACHABLE, StrCat(status.message(), words)), std::nullopt};
}

}  // namespace

bool OneshotMayHelp(const absl::Status& status) { return status.GetPayload(kOneshotHelps).has_value(); }

absl::Status WithOneshotHelp(absl::Status status) {
  status.SetPayload(kOneshotHelps, absl::Cord("1"));
  return status;
}

absl::Status StartDaemon(const ClientEnvironment& environment, const ClientOptions& options, const Endpoint& endpoint,
                         std::optional<pid_t> unwanted, const Greet& greet, Caller& caller) {
  return DaemonStarter(environment, options, endpoint, caller).Start(unwanted, greet);
}

absl::StatusOr<Oneshot> StartOneshot(const ClientEnvironment& environment, const ClientOptions& options,
                                     const std::string& store_directory, Caller& caller) {
  KERNIX_ASSIGN_OR_RETURN(const std::string program, FindKernixd(environment, options.kernixd));
  Attempt attempt = TryStore(environment, program, store_directory, options.start_timeout, caller);
  const bool store_is_at_fault = attempt.exit_code == kExitStoreUnusable || attempt.exit_code == kExitAlreadyRunning ||
                                 attempt.exit_code == kUnknownExit;
  if (!store_is_at_fault) return std::move(attempt.oneshot);

  KERNIX_ASSIGN_OR_RETURN(const std::string scratch, PerProcess<ScratchStore>::Get().Path(environment));
  // What the store has is read if that is possible: another container's kernixd may hold it, for example.
  const std::string stores = StrCat(scratch, ":", store_directory);
  attempt = TryStore(environment, program, stores, options.start_timeout, caller);
  if (attempt.oneshot.ok()) attempt.oneshot->store_directory = scratch;
  return std::move(attempt.oneshot);
}

}  // namespace kernix
