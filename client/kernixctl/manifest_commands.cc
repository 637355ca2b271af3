// SPDX-License-Identifier: Apache-2.0
//
// The commands of manifests: `kernixctl record` runs a user's command in the foreground, and writes a manifest of its
// loads; `kernixctl prefetch` puts the kernels of a manifest into this machine's cache.
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
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/kernixctl/command.h"
#include "client/kernixctl/manifest.h"
#include "client/kernixctl/progress_line.h"
#include "client/kernixctl/replay.h"
#include "client/load/load_request.h"
#include "client/load/recording.h"
#include "client/tools/environment.h"
#include "common/base/error.h"
#include "common/base/paths.h"
#include "common/base/shell_words.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "common/os/env.h"

namespace kernix::ctl {
namespace {

// --- Record

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

  // Starts the command, with the signal actions that this process had before. Returns 0 or an errno.
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

constexpr char kRecordDetails[] =
    R"(Runs COMMAND and writes a manifest of all loads in all its processes, hits included: for each load the sources,
the headers, the options, and the key. `kernixctl prefetch` puts these kernels into another machine's cache. The
manifest does not contain files that flags name (a library's folder, for example): they must have the same path there.

Exit codes: COMMAND's, 128 + N if signal N ended it; 126 or 127 if it cannot start; 1 if it succeeds but the manifest
cannot be written.

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

// With a folder in which the command's processes note their loads.
int RecordIn(const std::string& folder, const RecordFlags& flags) {
  const absl::StatusOr<int> code = RunInForeground(flags.command, StrCat(kRecordVariable, "=", folder));
  if (!code.ok()) {
    Fail(code.status());
    return absl::IsNotFound(code.status()) ? kNotFoundCode : kCannotRunCode;
  }
  const absl::Status written = Write(folder, flags.output);
  if (written.ok()) return *code;
  const int failure = Fail(written);
  return *code == kOk ? failure : *code;
}

int RunRecord(const RecordFlags& flags) {
  if (const absl::Status output = CheckOutput(flags.output); !output.ok()) return Fail(output);
  const std::string parent = AbsolutePath(ProcessGetEnv("TMPDIR").value_or("/tmp"));
  const absl::StatusOr<std::string> folder = Env::Posix().CreateTempDirectory(JoinPath(parent, "kernix-record-"));
  if (!folder.ok()) return Fail(folder.status());
  const int code = RecordIn(*folder, flags);
  (void)Env::Posix().RemoveTree(*folder);
  return code;
}

// --- Prefetch

constexpr char kPrefetchDetails[] =
    R"(Puts the kernels of a manifest of `kernixctl record` into this machine's cache, and compiles the missing ones.
With --policy cached, compiles nothing, and lists the missing kernels. Finds compilers as `compile` does. A load that
left its architecture to the GPU gets that of the GPU here; without a GPU, the recorded one.

With --ready-file, removes the file at the start, and creates it when all kernels are in the cache, for an
orchestrator's probe.

Exit codes: 0 all are in the cache; else the first failed load's: 3 no daemon, 4 the code does not compile, 5 no
usable compiler, 6 not in the cache; 130 interrupted.

Examples:
  kernixctl prefetch kernels.manifest
  kernixctl prefetch kernels.manifest --ready-file /run/kernix/ready
  kernixctl prefetch kernels.manifest --policy cached)";

struct PrefetchFlags {
  std::string manifest;
  std::string ready_file;
  std::string policy;
  ReplayFlags replay;
};

// The first kernels may have been evicted for the last ones.
int CheckAllAreThere(DaemonClient& daemon, const Recording& recording) {
  LoadOptions options;
  options.policy = LoadPolicy::kCached;
  options.callbacks.cancelled = Interrupted;
  for (const v1::RecordedLoad& load : recording.loads) {
    const absl::Status there = LoadRecorded(daemon, recording, load, options).status();
    if (there.ok()) continue;
    if (KindOf(there) == v1::ErrorDetail::NOT_CACHED) {
      std::cerr << "kernixctl: the cache has dropped " << Printable(load.request().name())
                << " again: raise kernixd's cache_limit_bytes, if nobody purges the cache\n";
      return kNotCached;
    }
    return Fail(there);
  }
  return kOk;
}

// Until all kernels are there, nobody may find a file of an earlier run.
absl::Status RemoveReadyFile(const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  const absl::Status removed = Env::Posix().RemoveFile(AbsolutePath(path));
  return absl::IsNotFound(removed) ? absl::OkStatus() : removed;
}

absl::Status MakeReadyFile(const std::string& path, size_t count) {
  if (path.empty()) return absl::OkStatus();
  return Env::Posix().WriteFileDurably(AbsolutePath(path), StrCat(count, " modules are there\n"), 0644);
}

int PrefetchWith(DaemonClient& daemon, const PrefetchFlags& flags) {
  const absl::Status removed = RemoveReadyFile(flags.ready_file);
  if (!removed.ok()) return Fail(removed);
  const absl::StatusOr<Recording> recording = ReadManifest(flags.manifest);
  if (!recording.ok()) return Fail(recording.status());
  std::optional<LoadPolicy> policy;
  if (!flags.policy.empty()) policy = PolicyNamed(flags.policy, "--policy").value();
  int code = Replay(daemon, *recording, policy, flags.replay);
  if (code == kOk) code = CheckAllAreThere(daemon, *recording);
  if (code != kOk) return code;
  const absl::Status ready = MakeReadyFile(flags.ready_file, recording->loads.size());
  return ready.ok() ? kOk : Fail(ready);
}

}  // namespace

Command RecordCommand() {
  const auto flags = std::make_shared<RecordFlags>();
  return {.name = "record",
          .summary = "Run a command, and record its loads",
          .details = kRecordDetails,
          .options = {{"-o,--output",
                       &flags->output,
                       "Write the manifest to this file",
                       {.required = true, .names = Names::kFiles}},
                      {"command", &flags->command, "After --: the command and its arguments", {.required = true}}},
          .run = [flags] { return RunRecord(*flags); }};
}

Command PrefetchCommand(const ClientOptions& options) {
  const auto flags = std::make_shared<PrefetchFlags>();
  return {.name = "prefetch",
          .summary = "Put the kernels of a manifest into the cache",
          .details = kPrefetchDetails,
          .options = {{"manifest",
                       &flags->manifest,
                       "A manifest of `kernixctl record`",
                       {.required = true, .names = Names::kFiles}},
                      AtOnce(flags->replay.at_once),
                      {"--ready-file",
                       &flags->ready_file,
                       "Create this file when all kernels are in the cache; remove it at the start",
                       {.names = Names::kFiles}},
                      PolicyOption(flags->policy),
                      SitePackages(flags->replay.site_packages),
                      JsonPerModule(flags->replay.json)},
          .run = [&options, flags] {
            return WithReplayClient(options, flags->replay,
                                    [&flags](DaemonClient& daemon) { return PrefetchWith(daemon, *flags); });
          }};
}

}  // namespace kernix::ctl
