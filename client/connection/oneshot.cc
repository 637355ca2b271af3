// SPDX-License-Identifier: Apache-2.0
#include "client/connection/oneshot.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "client/connection/daemon_process.h"
#include "client/connection/daemon_starter.h"
#include "client/connection/grpc_call.h"
#include "client/connection/kernixd_program.h"
#include "client/connection/unix_socket.h"
#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/fork_safety.h"
#include "common/wire/kernixd_exit.h"

namespace kernix {
namespace {

using std::chrono::milliseconds;

// The result of a start: a daemon, or an error and the exit code.
struct Attempt {
  absl::StatusOr<Oneshot> oneshot;
  std::optional<int> exit_code;
};

class ScratchStore {
 public:
  static ScratchStore& Get() {
    static auto* store = new ScratchStore;
    return *store;
  }

  absl::StatusOr<std::string> Path(const ClientEnvironment& environment) {
    MutexLock lock(mutex_);
    if (owner_ == getpid()) return path_;  // a parent's folder is removed with the parent
    const std::string parent = environment.get_env("TMPDIR").value_or("/tmp");
    KERNIX_ASSIGN_OR_RETURN(path_, environment.env->CreateTempDirectory(JoinPath(parent, "kernix-oneshot-")));
    owner_ = getpid();
    [[maybe_unused]] static const int registered = std::atexit([] { Get().Remove(); });
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

[[maybe_unused]] const ScratchStore& kMadeAtLoad = ScratchStore::Get();

// A file without a name: if no daemon can have a place, its log cannot have one either.
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

  Oneshot oneshot{.daemon = std::make_unique<PrivateDaemon>(*std::move(process)),
                  .connection = std::make_unique<Http2Connection>(std::move(sockets->first)),
                  .store_directory = store};
  v1::GetInfoResponse info;
  const std::string peer = StrCat(program, " --oneshot-fd");
  const absl::Status status =
      CallOnce(*oneshot.connection, peer, "GetInfo", v1::GetInfoRequest(), info, timeout, caller);
  if (status.ok()) return {std::move(oneshot), std::nullopt};
  oneshot.connection.reset();
  const std::optional<int> exit_code = oneshot.daemon->AwaitExit();
  const std::string words = LastWords(*environment.env, log.path, 0);
  if (exit_code) return {EndedError(program, *exit_code, words), exit_code};
  return {MakeError(v1::ErrorDetail::UNREACHABLE, StrCat(status.message(), words)), std::nullopt};
}

}  // namespace

std::optional<int> PrivateDaemon::AwaitExit() {
  constexpr milliseconds kPatience{1000};
  const MonotonicTime deadline = std::chrono::steady_clock::now() + kPatience;
  std::optional<int> exit_code = process_.ExitCode();
  while (!exit_code && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(milliseconds(2));
    exit_code = process_.ExitCode();
  }
  return exit_code;
}

absl::StatusOr<Oneshot> StartOneshot(const ClientEnvironment& environment, const ClientOptions& options,
                                     const std::string& store_directory, Caller& caller) {
  KERNIX_ASSIGN_OR_RETURN(const std::string program, FindKernixd(environment, options.kernixd));
  Attempt attempt = TryStore(environment, program, store_directory, options.start_timeout, caller);
  const bool store_is_at_fault = attempt.exit_code == kExitStoreUnusable || attempt.exit_code == kExitAlreadyRunning;
  if (!store_is_at_fault) return std::move(attempt.oneshot);

  KERNIX_ASSIGN_OR_RETURN(const std::string scratch, ScratchStore::Get().Path(environment));
  return TryStore(environment, program, scratch, options.start_timeout, caller).oneshot;
}

}  // namespace kernix
