// SPDX-License-Identifier: Apache-2.0
#include "client/kernixctl/run_command.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>

#include "client/tools/environment.h"
#include "common/base/strings.h"
#include "common/os/argv.h"

namespace kernix::ctl {
namespace {

constexpr int kOfTheTerminal[] = {SIGINT, SIGQUIT};
constexpr int kPassedOn[] = {SIGTERM, SIGHUP};

volatile sig_atomic_t command = 0;

void PassOn(int signal) {
  if (command > 0) kill(command, signal);
}

// From its construction on, this process does about signals what is right while a command runs.
class Signals {
 public:
  Signals() {
    sigemptyset(&defaults_);
    sigset_t held;
    sigemptyset(&held);
    for (const int signal : kPassedOn) sigaddset(&held, signal);
    sigprocmask(SIG_BLOCK, &held, &mask_);  // until the command is there
    for (const int signal : kOfTheTerminal) Handle(signal, SIG_IGN);
    for (const int signal : kPassedOn) Handle(signal, PassOn);
  }

  // Starts the command, in which signals do what they did in this process before. Returns 0 or an errno.
  int Spawn(std::vector<std::string> words, std::vector<std::string> environment) const {
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attributes, &mask_);
    posix_spawnattr_setsigdefault(&attributes, &defaults_);
    pid_t pid = 0;
    const int error =
        posix_spawnp(&pid, words[0].c_str(), nullptr, &attributes, ToArgv(words).data(), ToArgv(environment).data());
    posix_spawnattr_destroy(&attributes);
    command = pid;
    sigprocmask(SIG_SETMASK, &mask_, nullptr);
    return error;
  }

 private:
  // A signal that is ignored, as by nohup, stays ignored.
  void Handle(int signal, void (*handler)(int)) {
    struct sigaction before {
    }, now{};
    sigaction(signal, nullptr, &before);
    if (before.sa_handler == SIG_IGN) return;
    now.sa_handler = handler;
    now.sa_flags = SA_RESTART;
    sigaction(signal, &now, nullptr);
    sigaddset(&defaults_, signal);
  }

  sigset_t mask_;
  sigset_t defaults_;
};

std::vector<std::string> EnvironmentWith(const std::string& variable) {
  const std::string beginning = variable.substr(0, variable.find('=') + 1);
  std::vector<std::string> variables = ProcessVariables();
  std::erase_if(variables, [&](const std::string& other) { return other.starts_with(beginning); });
  variables.push_back(variable);
  return variables;
}

int WaitForCommand() {
  int status = 0;
  while (waitpid(command, &status, 0) < 0 && errno == EINTR) {
  }
  command = 0;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

absl::StatusOr<int> RunInForeground(const std::vector<std::string>& words, const std::string& variable) {
  const int error = Signals().Spawn(words, EnvironmentWith(variable));
  if (error == 0) return WaitForCommand();
  const std::string message = StrCat("cannot run ", words[0], ": ", strerror(error));
  return error == ENOENT ? absl::NotFoundError(message) : absl::PermissionDeniedError(message);
}

}  // namespace kernix::ctl
