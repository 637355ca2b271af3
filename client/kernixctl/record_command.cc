// SPDX-License-Identifier: Apache-2.0
//
// `kernixctl record`: runs a user's command in the foreground, and writes a manifest of what it loads.
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/kernixctl/command.h"
#include "client/kernixctl/manifest.h"
#include "client/load/recording.h"
#include "client/tools/absolute_path.h"
#include "client/tools/environment.h"
#include "common/base/error.h"
#include "common/base/paths.h"
#include "common/base/shell_words.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/env.h"

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

// Runs `words`, the first of which is found on PATH, with this process's terminal, files and environment, in which
// `variable` ("NAME=value") replaces the one of its name, and waits for its end. Ctrl-C is for the command, which the
// terminal tells as well; SIGTERM and SIGHUP are passed on. Returns its exit code, 128 + N if signal N ended it.
// kNotFound or kPermissionDenied if it cannot be started. Call it in a process that has no other thread and no other
// child.
absl::StatusOr<int> RunInForeground(const std::vector<std::string>& words, const std::string& variable) {
  const int error = Signals().Spawn(words, EnvironmentWith(variable));
  if (error == 0) return WaitForCommand();
  const std::string message = StrCat("cannot run ", words[0], ": ", strerror(error));
  return error == ENOENT ? absl::NotFoundError(message) : absl::PermissionDeniedError(message);
}

constexpr char kDetails[] =
    R"(Runs COMMAND and writes a manifest of all that it loads, in all its processes, from the cache or not: for each load
the sources, the headers, the options, and the key. `kernixctl prefetch` makes another machine have these kernels. What
does not travel: files that flags name (a library's folder, for example) have to be at the same place there.

Exit codes: that of COMMAND, 128 + N if signal N ended it; 126 or 127 if it cannot be started; 1 if it succeeds and the
manifest cannot be written.

Examples:
  kernixctl record -o kernels.manifest -- python train.py --steps 1
  kernixctl record -o kernels.manifest -- kernixctl build kernels --arch sm_90)";

// As in a shell.
constexpr int kNotFoundCode = 127;
constexpr int kCannotRunCode = 126;

struct RecordFlags {
  std::string output;
  std::vector<std::string> command;
};

// A folder that is removed at the end.
class Scratch {
 public:
  static absl::StatusOr<Scratch> Make() {
    const std::string parent = ProcessGetEnv("TMPDIR").value_or("/tmp");
    KERNIX_ASSIGN_OR_RETURN(std::string path,
                            Env::Posix().CreateTempDirectory(JoinPath(AbsolutePath(parent), "kernix-record-")));
    return Scratch(std::move(path));
  }
  Scratch(Scratch&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    if (!path_.empty()) (void)Env::Posix().RemoveTree(path_);
  }

  const std::string& path() const { return path_; }

 private:
  explicit Scratch(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// A command may run for hours: what can be known before is said before.
absl::Status CheckOutput(const std::string& output) {
  const std::string folder = Dirname(AbsolutePath(output));
  if (access(folder.c_str(), W_OK | X_OK) == 0) return absl::OkStatus();
  return MakeError(v1::ErrorDetail::INVALID_REQUEST, StrCat("no manifest can be written to ", output, ": ", folder,
                                                            " is not there, or this user may not write to it"));
}

absl::Status Write(const std::string& folder, const std::string& output) {
  KERNIX_ASSIGN_OR_RETURN(const Recording recording, ReadRecording(Env::Posix(), folder));
  KERNIX_RETURN_IF_ERROR(Env::Posix().WriteFileDurably(AbsolutePath(output), ManifestOf(recording), 0644));
  std::cerr << "kernixctl: " << recording.loads.size() << (recording.loads.size() == 1 ? " load" : " loads")
            << " recorded in " << output << "\n";
  return absl::OkStatus();
}

int Run(const RecordFlags& flags) {
  if (const absl::Status output = CheckOutput(flags.output); !output.ok()) return Fail(output);
  const absl::StatusOr<Scratch> scratch = Scratch::Make();
  if (!scratch.ok()) return Fail(scratch.status());
  const absl::StatusOr<int> code = RunInForeground(flags.command, StrCat(kRecordVariable, "=", scratch->path()));
  if (!code.ok()) {
    Fail(code.status());
    return absl::IsNotFound(code.status()) ? kNotFoundCode : kCannotRunCode;
  }
  const absl::Status written = Write(scratch->path(), flags.output);
  if (written.ok()) return *code;
  const int failure = Fail(written);
  return *code == kOk ? failure : *code;
}

}  // namespace

Command RecordCommand() {
  const auto flags = std::make_shared<RecordFlags>();
  return {.name = "record",
          .summary = "Run a command, and note what it loads",
          .details = kDetails,
          .options = {{"-o,--output",
                       &flags->output,
                       "Write the manifest to this file",
                       {.required = true, .names = Names::kFiles}},
                      {"command", &flags->command, "After --: the command and its arguments", {.required = true}}},
          .run = [flags] { return Run(*flags); }};
}

}  // namespace kernix::ctl
