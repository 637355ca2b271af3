// SPDX-License-Identifier: Apache-2.0
#include "tests/support/engine/child_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "common/base/shell_words.h"
#include "common/base/strings.h"
#include "common/os/env.h"
#include "tests/support/await.h"

namespace kernix::testing {
namespace {

constexpr int kInheritedFd = 3;

pid_t Spawn(std::vector<std::string> argv, std::vector<std::string> environment, const ChildCommand& command) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, command.log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  const bool inherits = command.inherited_fd >= 0;
  if (inherits) posix_spawn_file_actions_adddup2(&actions, command.inherited_fd, kInheritedFd);
  posix_spawn_file_actions_addclosefrom_np(&actions, inherits ? kInheritedFd + 1 : kInheritedFd);
  pid_t pid = 0;
  const int error =
      posix_spawn(&pid, argv[0].c_str(), &actions, nullptr, ToArgv(argv).data(), ToArgv(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  EXPECT_EQ(error, 0) << argv[0] << ": " << std::strerror(error);
  return error == 0 ? pid : 0;
}

}  // namespace

ChildProcess::ChildProcess(const ChildCommand& command) : log_(command.log) {
  std::vector<std::string> argv = {"/usr/bin/setpriv", "--pdeathsig=TERM"};
  argv.insert(argv.end(), command.argv.begin(), command.argv.end());
  std::vector<std::string> environment;
  for (const auto& [name, value] : command.environment) environment.push_back(StrCat(name, "=", value));
  pid_ = Spawn(std::move(argv), std::move(environment), command);
}

ChildProcess::~ChildProcess() { End(SIGKILL); }

bool ChildProcess::IsRunning() {
  if (pid_ != 0 && waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = 0;
  return pid_ != 0;
}

void ChildProcess::End(int signal) {
  if (!IsRunning()) return;
  kill(pid_, signal);
  // Now and then, buildbox-casd hangs at its end.
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(15);
  while (IsRunning() && std::chrono::steady_clock::now() < patience) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  if (!IsRunning()) return;
  kill(pid_, SIGKILL);
  Await(StrCat("the end of process ", pid_), [this] { return !IsRunning(); });
}

std::string ChildProcess::Log() const { return Env::Posix().ReadFile(log_).value_or(""); }

}  // namespace kernix::testing
