// SPDX-License-Identifier: Apache-2.0
#include "common/os/spawner.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/posix_error.h"
#include "common/os/unix_socket.h"

namespace kernix::spawn {
namespace {

// One that takes no jobs for so long hangs: another one is started.
constexpr timeval kPatience = {.tv_sec = 10, .tv_usec = 0};

void LimitWaits(int socket) { setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof(kPatience)); }

std::string ProgramBesideThisOne() {
  std::array<char, PATH_MAX> own;
  const ssize_t size = readlink("/proc/self/exe", own.data(), own.size());
  const std::string program(own.data(), size > 0 ? static_cast<size_t>(size) : 0);
  return JoinPath(Dirname(program), "kernix-spawn");
}

// It has a session of its own, so that a signal from the terminal does not end it before this process.
absl::StatusOr<pid_t> StartProgram(const std::string& path, int socket) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, socket, STDIN_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  posix_spawn_file_actions_addchdir_np(&actions, "/");
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  char* const argv[] = {const_cast<char*>("kernix-spawn"), nullptr};
  char* const environment[] = {nullptr};
  pid_t pid = 0;
  const int error = posix_spawn(&pid, path.c_str(), &actions, &attributes, argv, environment);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return ErrnoStatus(error, "run", path);
  return pid;
}

}  // namespace

Spawner& Spawner::Get() {
  static Spawner& spawner = *new Spawner;
  return spawner;
}

Spawner::Spawner() : program_(ProgramBesideThisOne()) {}

void Spawner::SetProgram(std::string path) {
  const MutexLock lock(mutex_);
  program_ = std::move(path);
  socket_.reset();
}

void Spawner::SetSocket(std::string path) {
  const MutexLock lock(mutex_);
  service_ = std::move(path);
}

void Spawner::SetFloor(Rung rung, bool shows_machine) {
  const MutexLock lock(mutex_);
  floor_ = rung;
  shows_machine_ = shows_machine;
}

Enclosure Spawner::WithFloor(Enclosure enclosure) const {
  if (enclosure.rung >= floor_) return enclosure;
  enclosure.rung = floor_;
  if (shows_machine_) enclosure.readable = {"/"};
  return enclosure;
}

absl::StatusOr<UniqueFd> Spawner::Submit(const Enclosure& enclosure, int output) {
  KERNIX_ASSIGN_OR_RETURN(auto job, ConnectedPair(SOCK_STREAM));
  const MutexLock lock(mutex_);
  const std::string message = Encode(WithFloor(enclosure));
  if (socket_.ok() && HandOver(socket_.get(), message, job.second.get(), output)) return std::move(job.first);
  KERNIX_RETURN_IF_ERROR(Start());
  if (HandOver(socket_.get(), message, job.second.get(), output)) return std::move(job.first);
  return ErrnoStatus(errno, "reach", service_.empty() ? program_ : service_);
}

absl::Status Spawner::Connect() {
  KERNIX_RETURN_IF_ERROR(CheckSocketPath(service_));
  const SocketAddress address(service_);
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket.ok()) return ErrnoStatus(errno, "create", "a socket");
  if (connect(socket.get(), address.get(), address.size()) != 0) {
    return ErrnoStatus(errno, "connect to kernix-spawn at", service_);
  }
  socket_ = std::move(socket);
  LimitWaits(socket_.get());
  return absl::OkStatus();
}

absl::Status Spawner::Start() {
  if (!service_.empty()) return Connect();
  KERNIX_ASSIGN_OR_RETURN(auto control, ConnectedPair(SOCK_SEQPACKET));
  LimitWaits(control.first.get());
  socket_.reset();
  if (pid_ != 0) {
    kill(pid_, SIGKILL);  // unless it has ended
    waitpid(std::exchange(pid_, 0), nullptr, 0);
  }
  KERNIX_ASSIGN_OR_RETURN(pid_, StartProgram(program_, control.second.get()));
  socket_ = std::move(control.first);
  return absl::OkStatus();
}

namespace {

std::string InstallationOf(const std::string& program) {
  const std::string folder = Dirname(program);
  return Basename(folder) == "bin" ? Dirname(folder) : folder;
}

// A tool needs none of these, and "/" would be everything.
bool IsOfSystem(const std::string& folder) {
  return folder == "/" || folder == "/dev" || (folder + "/").starts_with("/usr/") || folder.starts_with("/proc/");
}

}  // namespace

std::vector<std::string> ToolFolders(Env& env, const std::vector<std::string>& programs,
                                     const std::map<std::string, std::string>& environment) {
  std::set<std::string> folders;
  for (const std::string& program : programs) {
    if (!program.starts_with('/')) continue;
    folders.insert(InstallationOf(program));
    folders.insert(InstallationOf(env.RealPath(program).value_or(program)));
  }
  for (const auto& [name, value] : environment) {
    for (const absl::string_view folder : absl::StrSplit(ToAbsl(value), ':')) {
      if (absl::StartsWith(folder, "/")) folders.insert(std::string(folder));
    }
  }
  std::erase_if(folders, IsOfSystem);
  return {folders.begin(), folders.end()};
}

}  // namespace kernix::spawn
