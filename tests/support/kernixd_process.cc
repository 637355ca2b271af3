// SPDX-License-Identifier: Apache-2.0
#include "tests/support/kernixd_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

#include "common/base/shell_words.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/env.h"
#include "common/os/posix_error.h"
#include "common/os/unix_socket.h"

namespace kernix {
namespace {

constexpr int kInheritedFd = 3;
// Longer than any machine takes; a test that waits this long has failed.
constexpr int kPatienceMs = 120'000;

// systemd names the process that a socket is meant for, but a process does not know its id before it runs.
constexpr char kActivate[] = "LISTEN_PID=$$ LISTEN_FDS=1; export LISTEN_PID LISTEN_FDS; exec \"$0\" \"$@\"";

std::vector<std::string> Argv(const KernixdPlace& place, const KernixdCommand& command) {
  std::vector<std::string> argv;
  if (command.user) {
    argv = {"/usr/bin/setpriv", StrCat("--reuid=", *command.user), StrCat("--regid=", *command.user), "--clear-groups"};
  }
  if (command.socket_activation) argv.insert(argv.end(), {"/bin/sh", "-c", kActivate});
  argv.push_back(command.program);
  if (command.place_arguments) {
    argv.insert(argv.end(), {"--store-directory", place.store()});
    if (!command.socket_activation) argv.insert(argv.end(), {"--socket", place.socket()});
  }
  argv.insert(argv.end(), command.arguments.begin(), command.arguments.end());
  return argv;
}

std::vector<std::string> Environment(const KernixdPlace& place, const KernixdCommand& command,
                                     const std::string& notify) {
  std::map<std::string, std::string> all = {
      {"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"HOME", place.root()}, {"NOTIFY_SOCKET", notify}};
  for (const auto& [name, value] : command.environment) all[name] = value;
  std::vector<std::string> texts;
  for (const auto& [name, value] : all) texts.push_back(StrCat(name, "=", value));
  return texts;
}

absl::StatusOr<UniqueFd> NotifySocket(const std::string& path, uid_t user) {
  UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const SocketAddress address(path);
  unlink(path.c_str());
  if (bind(fd.get(), address.get(), address.size()) != 0) return ErrnoStatus(errno, "bind", path);
  if (chown(path.c_str(), user, static_cast<gid_t>(-1)) != 0) return ErrnoStatus(errno, "give away", path);
  return fd;
}

// The actions of posix_spawn() in the child.
class SpawnActions {
 public:
  SpawnActions(const std::string& log, int inherited_fd) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions_, 1, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2(&actions_, 1, 2);
    if (inherited_fd >= 0) posix_spawn_file_actions_adddup2(&actions_, inherited_fd, kInheritedFd);
    posix_spawn_file_actions_addclosefrom_np(&actions_, inherited_fd >= 0 ? kInheritedFd + 1 : kInheritedFd);
  }
  ~SpawnActions() { posix_spawn_file_actions_destroy(&actions_); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;

  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

}  // namespace

KernixdPlace::KernixdPlace() : root_(Env::Posix().CreateTempDirectory("/tmp/kxd-").value()) {}

KernixdPlace::~KernixdPlace() {
  if (testing::Test::HasFailure()) {
    std::fprintf(stderr, "kept for a look: %s\n", root_.c_str());
  } else {
    Env::Posix().RemoveTree(root_).IgnoreError();
  }
}

absl::StatusOr<std::unique_ptr<KernixdProcess>> KernixdProcess::Start(const KernixdPlace& place,
                                                                      const KernixdCommand& command) {
  static int count = 0;
  const std::string name = StrCat(place.root(), "/", ++count);
  KERNIX_ASSIGN_OR_RETURN(UniqueFd notify, NotifySocket(name + ".notify", command.user.value_or(geteuid())));
  std::vector<std::string> argv = Argv(place, command);
  std::vector<std::string> environment = Environment(place, command, name + ".notify");
  const SpawnActions actions(name + ".log", command.inherited_fd);
  pid_t pid = 0;
  const int error =
      posix_spawn(&pid, argv[0].c_str(), actions.get(), nullptr, ToArgv(argv).data(), ToArgv(environment).data());
  if (error != 0) return ErrnoStatus(error, "start", argv[0]);
  UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  return std::unique_ptr<KernixdProcess>(new KernixdProcess(pid, std::move(process), std::move(notify), name + ".log"));
}

KernixdProcess::~KernixdProcess() {
  if (exit_code_ >= 0) return;
  Signal(SIGKILL);
  AwaitExit();
}

absl::Status KernixdProcess::AwaitReady() {
  while (true) {
    std::array<pollfd, 2> fds = {pollfd{notify_.get(), POLLIN, 0}, pollfd{process_.get(), POLLIN, 0}};
    if (poll(fds.data(), fds.size(), kPatienceMs) == 0) return absl::DeadlineExceededError(Log());
    if ((fds[0].revents & POLLIN) == 0) return absl::UnavailableError(Log());
    std::array<char, 256> buffer;
    const ssize_t size = recv(notify_.get(), buffer.data(), buffer.size(), 0);
    if (size > 0 && std::string_view(buffer.data(), size).starts_with("READY=1")) return absl::OkStatus();
  }
}

void KernixdProcess::Signal(int number) const { kill(pid_, number); }

int KernixdProcess::AwaitExit() {
  if (exit_code_ >= 0) return exit_code_;
  pollfd fd{process_.get(), POLLIN, 0};
  if (poll(&fd, 1, kPatienceMs) == 0) {
    ADD_FAILURE() << "kernixd does not end; its output:\n" << Log();
    Signal(SIGKILL);
  }
  int status = 0;
  waitpid(pid_, &status, 0);
  exit_code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return exit_code_;
}

std::string KernixdProcess::Log() const { return Env::Posix().ReadFile(log_).value_or(""); }

}  // namespace kernix
