// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/connection/daemon_client.h"
#include "client/kernixctl/batch.h"
#include "client/kernixctl/command.h"
#include "client/kernixctl/manifest.h"
#include "client/kernixctl/progress_line.h"
#include "client/load/load_request.h"
#include "client/load/recording.h"
#include "client/tools/absolute_path.h"
#include "common/base/error.h"
#include "common/base/json.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "common/os/env.h"

namespace kernix::ctl {
namespace {

constexpr char kDetails[] =
    R"(Makes this machine's cache have the kernels of a manifest that `kernixctl record` has written: those that are not
there are compiled. With --policy cached, nothing is compiled, and what is not there is named as missing. Compilers are
found as `compile` finds them. A load that left its architecture to the GPU gets that of the GPU here; without a GPU, it
keeps the recorded one.

With --ready-file, the file is removed at first, and made when all kernels are there: for a probe of an orchestrator.

Exit codes: 0 all are there; else that of the first load that failed: 3 no daemon, 4 the code does not compile, 5 no
usable compiler, 6 not in the cache; 130 interrupted.

Examples:
  kernixctl prefetch kernels.manifest
  kernixctl prefetch kernels.manifest --ready-file /run/kernix/ready
  kernixctl prefetch kernels.manifest --policy cached)";

struct PrefetchFlags {
  std::string manifest;
  std::string ready_file;
  std::string policy;
  std::vector<std::string> site_packages;
  uint32_t at_once = kLoadsAtOnce;
  bool json = false;
};

// The same sources and options have another key where the compilers, the GPU or kernixd are others.
bool HasOtherKey(const v1::RecordedLoad& load, const std::string& key) { return load.key() != key; }

std::string Line(const v1::RecordedLoad& load, const std::string& key, const v1::LoadResult& result) {
  const std::string built = result.build_ms() == 0 ? "" : StrCat(" in ", result.build_ms(), " ms");
  return Printable(StrCat(load.request().name(), " (",
                          OriginOf(result.from_upstream(), result.cache_hit(), result.joined()), built, ") ", key,
                          HasOtherKey(load, key) ? ", recorded as " + load.key() : ""));
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

class Prefetch {
 public:
  Prefetch(DaemonClient& daemon, const Recording& recording, const PrefetchFlags& flags)
      : daemon_(daemon), recording_(recording), flags_(flags) {
    if (!flags.policy.empty()) options_.policy = PolicyNamed(flags.policy, "--policy").value();
  }

  int Run() {
    std::vector<BatchItem> items;
    for (const v1::RecordedLoad& load : recording_.loads) {
      items.push_back({Printable(load.request().name()),
                       [this, &load](const LoadCallbacks& callbacks) { return Fetch(load, callbacks); }});
    }
    const int code = RunBatch(items, flags_.at_once, /*verbose=*/false);
    return code == kOk ? CheckAllAreThere() : code;
  }

 private:
  absl::StatusOr<BatchResult> Fetch(const v1::RecordedLoad& load, const LoadCallbacks& callbacks) {
    LoadOptions options = options_;
    options.callbacks = callbacks;
    KERNIX_ASSIGN_OR_RETURN(const v1::LoadResult result, LoadRecorded(daemon_, recording_, load, options));
    KERNIX_ASSIGN_OR_RETURN(const Digest key, Digest::FromRaw(result.key()));
    return BatchResult{flags_.json ? Json(load, key.Hex(), result) : Line(load, key.Hex(), result),
                       OriginOf(result.from_upstream(), result.cache_hit(), result.joined())};
  }

  // The first kernels may have been evicted for the last ones.
  int CheckAllAreThere() {
    LoadOptions options;
    options.policy = LoadPolicy::kCached;
    options.callbacks.cancelled = Interrupted;
    for (const v1::RecordedLoad& load : recording_.loads) {
      const absl::Status there = LoadRecorded(daemon_, recording_, load, options).status();
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

  DaemonClient& daemon_;
  const Recording& recording_;
  const PrefetchFlags& flags_;
  LoadOptions options_;
};

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

int RunWith(DaemonClient& daemon, const PrefetchFlags& flags) {
  const absl::Status removed = RemoveReadyFile(flags.ready_file);
  if (!removed.ok()) return Fail(removed);
  const absl::StatusOr<Recording> recording = ReadManifest(flags.manifest);
  if (!recording.ok()) return Fail(recording.status());
  const int code = Prefetch(daemon, *recording, flags).Run();
  if (code != kOk) return code;
  const absl::Status ready = MakeReadyFile(flags.ready_file, recording->loads.size());
  return ready.ok() ? kOk : Fail(ready);
}

int Run(const ClientOptions& options, const PrefetchFlags& flags) {
  ClientOptions with_packages = options;
  with_packages.site_packages = flags.site_packages;
  CatchInterrupt();
  return WithClient(with_packages, [&flags](DaemonClient& daemon) { return RunWith(daemon, flags); });
}

}  // namespace

Command PrefetchCommand(const ClientOptions& options) {
  const auto flags = std::make_shared<PrefetchFlags>();
  return {.name = "prefetch",
          .summary = "Have the kernels of a manifest in the cache",
          .details = kDetails,
          .options = {{"manifest",
                       &flags->manifest,
                       "What `kernixctl record` has written",
                       {.required = true, .names = Names::kFiles}},
                      AtOnce(flags->at_once),
                      {"--ready-file",
                       &flags->ready_file,
                       "Make this file when all kernels are there; remove it at first",
                       {.names = Names::kFiles}},
                      PolicyOption(flags->policy),
                      SitePackages(flags->site_packages),
                      {"--json", &flags->json, "Print one JSON object per module"}},
          .run = [&options, flags] { return Run(options, *flags); }};
}

}  // namespace kernix::ctl
