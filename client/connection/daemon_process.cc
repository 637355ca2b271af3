// SPDX-License-Identifier: Apache-2.0
#include "client/connection/daemon_process.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/connection/endpoint.h"
#include "client/tools/environment.h"
#include "client/tools/toolchain_finder.h"
#include "common/base/error.h"
#include "common/base/shell_words.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/fork_safety.h"
#include "common/os/posix_error.h"
#include "common/wire/kernixd_exit.h"

namespace kernix {
namespace {

constexpr char kProgram[] = "kernixd";

// The folder of the executable or extension module that contains this code.
std::string OwnFolder(Env& env) {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&FindKernixd), &info) == 0 || info.dli_fname == nullptr) return "";
  // dladdr() may report an executable by the name that the user typed; the kernel knows its path.
  absl::StatusOr<std::string> path = env.RealPath(info.dli_fname);
  if (!path.ok()) path = env.RealPath("/proc/self/exe");
  return path.ok() ? Dirname(*path) : "";
}

std::vector<std::string> Candidates(const ClientEnvironment& environment) {
  std::vector<std::string> paths;
  if (const std::string own = OwnFolder(*environment.env); !own.empty()) {
    for (const char* folder : {"", "bin", "../bin"}) {
      paths.push_back(NormalizePath(JoinPath(JoinPath(own, folder), kProgram)));
    }
  }
  const std::string path = environment.get_env("PATH").value_or("");
  for (absl::string_view folder : absl::StrSplit(path, ':', absl::SkipEmpty())) {
    if (folder.front() == '/') paths.push_back(JoinPath(ToStd(folder), kProgram));
  }
  return paths;
}

absl::StatusOr<std::string> CheckNamed(Env& env, const std::string& path, const std::string& origin) {
  const absl::StatusOr<std::string> real = env.RealPath(path);
  if (real.ok() && IsProgram(env, *real)) return *real;
  return MakeError(v1::ErrorDetail::UNREACHABLE, StrCat(origin, ": ", path, " is not an executable program"));
}

// A kernixd that detaches itself, or has lost its only connection, takes milliseconds for that. Other programs never
// do.
constexpr std::chrono::milliseconds kPatience{1'000};

// posix_spawn's two descriptions of the child.
class SpawnPlan {
 public:
  explicit SpawnPlan(const DaemonCommand& command) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, command.log.c_str(), O_WRONLY | O_APPEND | O_CREAT,
                                     0600);
    posix_spawn_file_actions_adddup2(&actions_, STDOUT_FILENO, STDERR_FILENO);
    // Needed even if both are the same, because it clears the close-on-exec flag.
    if (command.socket >= 0) posix_spawn_file_actions_adddup2(&actions_, command.socket, kInheritedSocket);
    posix_spawn_file_actions_addclosefrom_np(&actions_, command.socket >= 0 ? kInheritedSocket + 1 : kInheritedSocket);
    posix_spawn_file_actions_addchdir_np(&actions_, "/");

    sigset_t signals;
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes_, &signals);
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&attributes_, &signals);
  }
  ~SpawnPlan() {
    posix_spawnattr_destroy(&attributes_);
    posix_spawn_file_actions_destroy(&actions_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  // Returns 0 or an errno.
  int Spawn(const std::string& program, char* const* argv, char* const* envp, pid_t& pid) const {
    return posix_spawn(&pid, program.c_str(), &actions_, &attributes_, argv, envp);
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

// Returns nullopt while the process is running. A child that other code has collected, or the kernel where SIGCHLD is
// ignored, has ended.
std::optional<int> Collect(pid_t pid) {
  int status = 0;
  const pid_t result = waitpid(pid, &status, WNOHANG);
  if (result == 0) return std::nullopt;
  if (result < 0) return kUnknownExit;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

absl::StatusOr<std::string> FindKernixd(const ClientEnvironment& environment, const std::string& named) {
  Env& env = *environment.env;
  if (!named.empty()) return CheckNamed(env, named, "the requested kernixd");
  if (const std::optional<std::string> path = environment.get_env("KERNIXD")) return CheckNamed(env, *path, "$KERNIXD");
  const std::vector<std::string> candidates = Candidates(environment);
  for (const std::string& path : candidates) {
    if (IsProgram(env, path)) return path;
  }
  return MakeError(v1::ErrorDetail::UNREACHABLE,
                   StrCat("the program kernixd was not found; install it, or name it in $KERNIXD. Looked at: ",
                          absl::StrJoin(candidates, ", ")));
}

absl::Status StartKernixctl(const ClientEnvironment& environment, const ClientOptions& options,
                            const std::vector<std::string>& variables, const std::vector<std::string>& arguments) {
  KERNIX_ASSIGN_OR_RETURN(const std::string kernixd, FindKernixd(environment, options.kernixd));
  const std::string program = JoinPath(Dirname(kernixd), "kernixctl");
  if (!IsProgram(*environment.env, program)) return absl::NotFoundError(StrCat("there is no ", program));
  // The shell leaves at once, so kernixctl has no parent.
  DaemonCommand command{
      .program = "/bin/sh", .arguments = {"-c", "\"$0\" \"$@\" &", program}, .environment = {}, .log = "/dev/null"};
  command.arguments.insert(command.arguments.end(), arguments.begin(), arguments.end());
  for (const std::string& variable : variables) {
    const size_t end = variable.find('=');
    if (end != std::string::npos) command.environment[variable.substr(0, end)] = variable.substr(end + 1);
  }
  return DaemonProcess::Start(command).status();
}

absl::StatusOr<DaemonProcess> DaemonProcess::Start(const DaemonCommand& command) {
  std::vector<std::string> arguments = {command.program};
  arguments.insert(arguments.end(), command.arguments.begin(), command.arguments.end());
  std::vector<std::string> environment;
  for (const auto& [name, value] : command.environment) environment.push_back(StrCat(name, "=", value));
  pid_t pid = 0;
  const int error =
      SpawnPlan(command).Spawn(command.program, ToArgv(arguments).data(), ToArgv(environment).data(), pid);
  if (error != 0) {
    return MakeError(v1::ErrorDetail::UNREACHABLE,
                     StrCat("start ", command.program, " (log in ", command.log, "): ", strerror(error)));
  }
  return DaemonProcess(pid);
}

absl::StatusOr<DaemonProcess> DaemonProcess::StartDetached(DaemonCommand command) {
  KERNIX_ASSIGN_OR_RETURN(auto report, MakeSocketPair());
  command.environment["KERNIX_STARTED_BY_CLIENT"] = "1";
  command.socket = report.second.get();
  KERNIX_ASSIGN_OR_RETURN(DaemonProcess process, Start(command));
  process.report_ = std::move(report.first);
  return process;
}

std::optional<int> DaemonProcess::AwaitChild() {
  const MonotonicTime patience = std::chrono::steady_clock::now() + kPatience;
  while (pid_ != 0 && !ExitCode() && std::chrono::steady_clock::now() < patience) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return exit_code_;
}

std::optional<int> DaemonProcess::ExitCode() {
  if (exit_code_) return exit_code_;
  if (pid_ != 0) {
    const std::optional<int> code = Collect(pid_);
    if (!code) return std::nullopt;
    pid_ = 0;
    // Of a daemon that runs on, its parent has ended well, or nobody knows how.
    const bool may_run_on = *code == kExitOk || *code == kUnknownExit;
    if (!may_run_on || !report_.ok()) return exit_code_ = code;
  }
  uint8_t code = 0;
  const ssize_t got = recv(report_.get(), &code, sizeof(code), MSG_DONTWAIT);
  if (got < 0) return std::nullopt;
  return exit_code_ = got > 0 ? code : kUnknownExit;
}

std::map<std::string, std::string> DaemonEnvironment(const GetEnv& get_env) {
  std::map<std::string, std::string> environment = {{"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"LANG", "C.UTF-8"}};
  std::vector<std::string> names = DaemonVariables();
  names.insert(names.end(), {"HOME", "USER", "LOGNAME", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME"});
  for (const std::string& name : names) {
    if (const std::optional<std::string> value = get_env(name)) environment[name] = *value;
  }
  return environment;
}

DaemonWatch::DaemonWatch(const ClientEnvironment& environment, const Endpoint& endpoint, pid_t pid)
    : environment_(environment), endpoint_(endpoint), pid_(pid) {
  const absl::StatusOr<PeerSocket> peer = ConnectTo(environment_, endpoint_);
  listener_ = peer.ok() ? peer->pid : 0;
  // Otherwise, the process id means another process here, or none.
  UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  const bool is_daemon = listener_ == pid || HolderOf(environment_, endpoint_) == pid;
  if (is_daemon) process_ = std::move(process);
}

absl::Status DaemonWatch::Terminate() const {
  if (syscall(SYS_pidfd_send_signal, process_.get(), SIGTERM, nullptr, 0) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, "stop kernixd, which holds the store", endpoint_.store_directory);
}

void DaemonWatch::KillIfDeaf() const {
  const std::string status = environment_.env->ReadFile(StrCat("/proc/", pid_, "/status")).value_or("");
  const std::string_view field = "ShdPnd:\t";  // the signals that wait for the process
  const size_t start = status.find(field);
  uint64_t waiting = 0;
  if (start == std::string::npos || !absl::SimpleHexAtoi(status.substr(start + field.size(), 16), &waiting)) return;
  if ((waiting >> (SIGTERM - 1) & 1) != 0) syscall(SYS_pidfd_send_signal, process_.get(), SIGKILL, nullptr, 0);
}

bool DaemonWatch::Gone() const {
  if (!process_.ok()) return RunFolderIsLeft();
  pollfd ended{process_.get(), POLLIN, 0};
  return poll(&ended, 1, 0) > 0;
}

// For this user's own daemon, the lock tells, if there is one: that daemon may have another run folder.
bool DaemonWatch::RunFolderIsLeft() const {
  const absl::StatusOr<PeerSocket> peer = ConnectTo(environment_, endpoint_);
  if (peer.ok()) return peer->pid != listener_;
  if (!absl::IsNotFound(peer.status())) return false;
  if (endpoint_.kind != EndpointKind::kOwn) return true;
  const auto lock = environment_.env->TryLockFile(endpoint_.run_folder.lock);
  return lock.ok() || absl::IsNotFound(lock.status());
}

}  // namespace kernix
