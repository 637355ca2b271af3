// SPDX-License-Identifier: Apache-2.0
//
// `kernixctl warmup`: builds what a program has loaded before, and lists the programs that are known. A client starts
// it, too: see client/load/own_history.h.
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/kernixctl/command.h"
#include "client/kernixctl/format.h"
#include "client/kernixctl/replay.h"
#include "client/load/history.h"
#include "client/tools/environment.h"
#include "common/base/error.h"
#include "common/base/json.h"
#include "common/base/nearest_name.h"
#include "common/base/paths.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "common/os/env.h"
#include "common/os/private_directory.h"

namespace kernix::ctl {
namespace {

constexpr char kDetails[] =
    R"(Builds what the last runs of PROGRAM have loaded and the cache lacks, for example after an upgrade of the compiler.
PROGRAM is the path of a Python script or of an executable. Your other loads go first. Finds compilers as `compile`
does. A program whose first load must be built starts this in the background, unless KERNIX_HISTORY=0.

Without PROGRAM, lists the programs that are known.

Exit codes: 0 all are in the cache, or another warm-up of PROGRAM runs; 1 PROGRAM is not known; else as for `prefetch`.

Examples:
  kernixctl warmup
  kernixctl warmup train.py
  kernixctl warmup --forget train.py)";

struct WarmupFlags {
  std::string program;
  bool forget = false;
  ReplayFlags replay = {.at_once = kOneForEachProcessor};
};

std::string Json(const KnownProgram& program) {
  return JsonObject()
      .Text("program", program.path)
      .Number("loads", program.loads)
      .Number("last_run_unix_ms", program.last_run_unix_ms)
      .Str();
}

int List(const std::vector<KnownProgram>& programs, bool json) {
  std::vector<std::vector<std::string>> rows = {{"LAST RUN", "LOADS", "PROGRAM"}};
  for (const KnownProgram& program : programs) {
    if (json) std::cout << Json(program) << "\n";
    rows.push_back({FormatTime(program.last_run_unix_ms), StrCat(program.loads), program.path});
  }
  if (!json) std::cout << FormatTable(rows);
  return kOk;
}

int RefuseUnknown(const std::string& program, const std::vector<KnownProgram>& programs) {
  std::vector<std::string> paths;
  for (const KnownProgram& known : programs) paths.push_back(known.path);
  return Fail(MakeError(v1::ErrorDetail::INVALID_REQUEST,
                        StrCat("no run of ", Printable(program), " has loaded kernels through this cache.",
                               DidYouMean(program, paths), " `kernixctl warmup` lists the programs that have")));
}

int WarmUp(DaemonClient& daemon, History& history, const WarmupFlags& flags) {
  const absl::StatusOr<std::unique_ptr<FileLock>> lock = history.Lock();
  if (absl::IsUnavailable(lock.status())) {
    std::cerr << "kernixctl: another warm-up of this program is running\n";
    return kOk;
  }
  if (!lock.ok()) return Fail(lock.status());
  return Replay(daemon, history.Read(), /*policy=*/std::nullopt, flags.replay);
}

int WarmupWith(DaemonClient& daemon, const WarmupFlags& flags) {
  const absl::StatusOr<std::string> folder = daemon.OwnFolder(kHistoriesFolder);
  if (!folder.ok()) return Fail(folder.status());
  const absl::Status own = CheckPrivateDirectory(Env::Posix(), *folder, geteuid());
  if (!own.ok() && !absl::IsNotFound(own)) return Fail(own);
  const std::vector<KnownProgram> programs = KnownPrograms(Env::Posix(), *folder);
  if (flags.program.empty()) return List(programs, flags.replay.json);
  const std::string program = NormalizePath(AbsolutePath(flags.program));
  const bool is_known = std::any_of(programs.begin(), programs.end(),
                                    [&program](const KnownProgram& known) { return known.path == program; });
  if (!is_known) return RefuseUnknown(program, programs);
  History history(Env::Posix(), *folder, program);
  if (!flags.forget) return WarmUp(daemon, history, flags);
  const absl::Status forgotten = history.Forget();
  return forgotten.ok() ? kOk : Fail(forgotten);
}

int RunWarmup(ClientOptions options, const WarmupFlags& flags) {
  if (flags.forget && flags.program.empty()) return RefuseUsage("--forget needs a program. See --help.");
  options.allow_oneshot = false;  // one kernixd for each load would build all of them side by side
  return WithReplayClient(options, flags.replay, [&flags](DaemonClient& daemon) { return WarmupWith(daemon, flags); });
}

}  // namespace

Command WarmupCommand(const ClientOptions& options) {
  const auto flags = std::make_shared<WarmupFlags>();
  return {.name = "warmup",
          .summary = "Build what a program has loaded before",
          .details = kDetails,
          .options = {{"program", &flags->program, "A script or an executable", {.names = Names::kFiles}},
                      {"--forget", &flags->forget, "Remove what is remembered of the program"},
                      AtOnce(flags->replay.at_once),
                      SitePackages(flags->replay.site_packages),
                      {"--json", &flags->replay.json, "Print one JSON object per module, or per program"}},
          .run = [&options, flags] { return RunWarmup(options, *flags); }};
}

}  // namespace kernix::ctl
