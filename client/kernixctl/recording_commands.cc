// SPDX-License-Identifier: Apache-2.0
//
// The commands that note loads and repeat them: `kernixctl record` runs a user's command in the foreground, and writes
// a manifest of its loads; `kernixctl prefetch` puts the kernels of a manifest into this machine's cache; `kernixctl
// warmup` does so with a program's history (client/load/history.h starts it, too).
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
#include "client/kernixctl/batch.h"
#include "client/kernixctl/command.h"
#include "client/kernixctl/manifest.h"
#include "client/kernixctl/progress_line.h"
#include "client/load/history.h"
#include "client/load/load_request.h"
#include "client/load/module.h"
#include "client/load/recording.h"
#include "client/tools/environment.h"
#include "common/base/error.h"
#include "common/base/json.h"
#include "common/base/paths.h"
#include "common/base/shell_words.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "common/os/env.h"
#include "common/os/private_directory.h"

namespace kernix::ctl {
namespace {

// --- Loads that are repeated

struct ReplayFlags {
  std::vector<std::string> site_packages;
  uint32_t at_once = kLoadsAtOnce;
  bool json = false;
};

std::string Line(const v1::RecordedLoad& load, const std::string& key, const v1::LoadResult& result) {
  // The same sources and options have another key where the compilers, the GPU or kernixd are others.
  const std::string recorded = load.key() == key ? "" : ", recorded as " + load.key();
  const std::string built = result.build_ms() == 0 ? "" : StrCat(" in ", result.build_ms(), " ms");
  return Printable(StrCat(load.request().name(), " (", InWords(OriginOf(result)), built, ") ", key, recorded));
}

std::string Json(const v1::RecordedLoad& load, const std::string& key, const v1::LoadResult& result) {
  return JsonObject()
      .Text("name", load.request().name())
      .Text("key", key)
      .Text("recorded_key", load.key())
      .Boolean("cache_hit", result.cache_hit())
      .Boolean("from_upstream", result.from_upstream())
      .Boolean("joined", result.joined())
      .Number("build_ms", result.build_ms())
      .Str();
}

Option JsonPerModule(bool& json) { return {"--json", &json, "Print one JSON object per module"}; }

// WithClient() for a replay, which Ctrl-C cancels.
int WithReplayClient(const ClientOptions& options, const ReplayFlags& flags,
                     const std::function<int(DaemonClient&)>& use) {
  ClientOptions with_packages = options;
  with_packages.site_packages = flags.site_packages;
  CatchInterrupt();
  return WithClient(with_packages, use);
}

// Has the daemon build or find all loads, in this order, and prints each one and a report, as RunBatch() does. Without
// `policy`, $KERNIX_POLICY counts.
int Replay(DaemonClient& daemon, const Recording& recording, std::optional<LoadPolicy> policy,
           const ReplayFlags& flags) {
  std::vector<BatchItem> items;
  for (const v1::RecordedLoad& load : recording.loads) {
    const auto run = [&, policy](const LoadCallbacks& callbacks) -> absl::StatusOr<BatchResult> {
      LoadOptions options;
      options.policy = policy;
      options.callbacks = callbacks;
      KERNIX_ASSIGN_OR_RETURN(const v1::LoadResult result, LoadRecorded(daemon, recording, load, options));
      KERNIX_ASSIGN_OR_RETURN(const Digest key, Digest::FromRaw(result.key()));
      return BatchResult{flags.json ? Json(load, key.Hex(), result) : Line(load, key.Hex(), result),
                         InWords(OriginOf(result))};
    };
    items.push_back({Printable(load.request().name()), run});
  }
  return RunBatch(items, flags.at_once, /*verbose=*/false);
}

// --- Record

volatile sig_atomic_t child = 0;
volatile sig_atomic_t early_signal = 0;  // before there was a child

// The terminal tells the command of a Ctrl-C itself.
void PassOn(int signal) {
  if (signal != SIGTERM && signal != SIGHUP) return;
  if (child > 0) {
    kill(child, signal);
  } else {
    early_signal = signal;
  }
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

absl::Status Write(const RecordingFolder& folder, const std::string& output) {
  KERNIX_ASSIGN_OR_RETURN(const Recording recording, folder.Read());
  KERNIX_RETURN_IF_ERROR(Env::Posix().WriteFileDurably(AbsolutePath(output), ManifestOf(recording), 0644));
  std::cerr << "kernixctl: " << recording.loads.size() << (recording.loads.size() == 1 ? " load" : " loads")
            << " recorded in " << output << "\n";
  return absl::OkStatus();
}

int RunRecord(const RecordFlags& flags) {
  if (const absl::Status output = CheckOutput(flags.output); !output.ok()) return Fail(output);
  const absl::StatusOr<RecordingFolder> folder = RecordingFolder::Make();
  if (!folder.ok()) return Fail(folder.status());
  const absl::StatusOr<int> code = RunInForeground(flags.command, folder->Environment());
  if (!code.ok()) {
    Fail(code.status());
    return absl::IsNotFound(code.status()) ? kNotFoundCode : kCannotRunCode;
  }
  const absl::Status written = Write(*folder, flags.output);
  if (written.ok()) return *code;
  const int failure = Fail(written);
  return *code == kOk ? failure : *code;
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

// --- Warm-up

constexpr char kWarmupDetails[] =
    R"(Builds what the last runs of PROGRAM have loaded and the cache lacks, for example after an upgrade of the compiler.
PROGRAM is the path of a Python script or of an executable. Your other loads go first. Finds compilers as `compile`
does. A program whose first load must be built starts this in the background, unless KERNIX_HISTORY=0.

Exit codes: 0 all are in the cache, or another warm-up of PROGRAM runs; 1 PROGRAM is not known; else as for `prefetch`.

Examples:
  kernixctl warmup train.py
  kernixctl warmup /srv/train.py -j 2)";

struct WarmupFlags {
  std::string program;
  ReplayFlags replay = {.at_once = kOneForEachProcessor};
};

int WarmupWith(DaemonClient& daemon, const WarmupFlags& flags) {
  const absl::StatusOr<std::string> folder = daemon.OwnFolder(kHistoriesFolder);
  if (!folder.ok()) return Fail(folder.status());
  const absl::Status own = CheckPrivateDirectory(Env::Posix(), *folder, geteuid());
  if (!own.ok() && !absl::IsNotFound(own)) return Fail(own);
  const std::string program = NormalizePath(AbsolutePath(flags.program));
  History history(Env::Posix(), *folder, program);
  const absl::StatusOr<std::unique_ptr<FileLock>> lock = history.Lock();
  if (absl::IsUnavailable(lock.status())) {
    std::cerr << "kernixctl: another warm-up of this program is running\n";
    return kOk;
  }
  if (absl::IsNotFound(lock.status())) {
    return Fail(MakeError(v1::ErrorDetail::INVALID_REQUEST,
                          StrCat("no run of ", Printable(program), " has loaded kernels through this cache")));
  }
  if (!lock.ok()) return Fail(lock.status());
  return Replay(daemon, history.Read(), /*policy=*/std::nullopt, flags.replay);
}

int RunWarmup(ClientOptions options, const WarmupFlags& flags) {
  options.allow_oneshot = false;  // one kernixd for each load would build all of them side by side
  return WithReplayClient(options, flags.replay, [&flags](DaemonClient& daemon) { return WarmupWith(daemon, flags); });
}

}  // namespace

absl::StatusOr<int> RunInForeground(std::vector<std::string> words, std::vector<std::string> environment) {
  for (const int number : {SIGINT, SIGQUIT, SIGTERM, SIGHUP}) {
    if (signal(number, PassOn) == SIG_IGN) signal(number, SIG_IGN);  // as nohup wants it
  }
  pid_t pid = 0;
  const int error =
      posix_spawnp(&pid, words[0].c_str(), nullptr, nullptr, ToArgv(words).data(), ToArgv(environment).data());
  if (error != 0) {
    const std::string message = StrCat("cannot run ", words[0], ": ", strerror(error));
    return error == ENOENT ? absl::NotFoundError(message) : absl::PermissionDeniedError(message);
  }
  child = pid;
  if (early_signal != 0) kill(pid, early_signal);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  child = 0;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

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

Command WarmupCommand(const ClientOptions& options) {
  const auto flags = std::make_shared<WarmupFlags>();
  return {
      .name = "warmup",
      .summary = "Build what a program has loaded before",
      .details = kWarmupDetails,
      .options = {{"program", &flags->program, "A script or an executable", {.required = true, .names = Names::kFiles}},
                  AtOnce(flags->replay.at_once),
                  SitePackages(flags->replay.site_packages),
                  JsonPerModule(flags->replay.json)},
      .run = [&options, flags] { return RunWarmup(options, *flags); }};
}

}  // namespace kernix::ctl
