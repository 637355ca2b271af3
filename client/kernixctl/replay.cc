// SPDX-License-Identifier: Apache-2.0
#include "client/kernixctl/replay.h"

#include "absl/status/statusor.h"
#include "client/kernixctl/progress_line.h"
#include "client/load/module.h"
#include "common/base/json.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"

namespace kernix::ctl {
namespace {

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

}  // namespace

Option JsonPerModule(bool& json) { return {"--json", &json, "Print one JSON object per module"}; }

int WithReplayClient(const ClientOptions& options, const ReplayFlags& flags,
                     const std::function<int(DaemonClient&)>& use) {
  ClientOptions with_packages = options;
  with_packages.site_packages = flags.site_packages;
  CatchInterrupt();
  return WithClient(with_packages, use);
}

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

}  // namespace kernix::ctl
