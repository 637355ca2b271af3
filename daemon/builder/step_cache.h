// SPDX-License-Identifier: Apache-2.0
//
// Results of steps that serve later builds (see Reuse in plan.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/digest.h"
#include "common/base/metrics.h"
#include "common/os/env.h"
#include "daemon/builder/toolchain_headers.h"
#include "daemon/builder/upstream_cache.h"
#include "daemon/cache/step_store.h"
#include "daemon/exec/action.h"
#include "daemon/plan/plan.h"
#include "daemon/toolchain/toolchain.h"

namespace kernix::build {

// Thread-safe. `key` is always KeyOf() of the step.
class StepCache {
 public:
  // `env`, `digests` and `upstream` must outlive the cache. `upstream` may be null: nothing is shared with other nodes.
  StepCache(Env& env, toolchain::FileDigests& digests, std::string folder, uint64_t limit_bytes,
            UpstreamCache* upstream = nullptr, LookAt look_at = LookAt::kAll)
      : env_(env),
        digests_(digests),
        store_(env, std::move(folder), limit_bytes),
        upstream_(upstream),
        look_at_(look_at) {}

  // Represents the step: steps of one key have the same result, as long as the headers that they read are the same.
  // `step.reuse` must be set, and the step must have all of its inputs.
  static Digest KeyOf(const Step& step, const toolchain::Toolchain& toolchain);

  // The result of an earlier step of the same key, if the headers that it has read still have the same content.
  std::optional<exec::ActionResult> Find(const Digest& key, const toolchain::Toolchain& toolchain);

  // The same for other nodes' results, while the load's `budget` (may be null) lasts; keeps a result that it finds.
  std::optional<exec::ActionResult> FindUpstream(const Digest& key, const Step& step, toolchain::ToolchainPtr toolchain,
                                                 UpstreamBudgetPtr budget, CancellationPtr cancellation);

  // Keeps a result, here and for other nodes, unless the command failed or printed something, or a file of a tool has
  // changed since the tool was identified. `start` is a time before the command began.
  void Keep(const Digest& key, const Step& step, const toolchain::Toolchain& toolchain, const BuildStart& start,
            const exec::ActionResult& result);

  void RemoveAll() { store_.RemoveAll(); }

  BuildStart Now() const { return {env_.Now(), env_.UnixMillis()}; }

  void Register(MetricsRegistry& registry) const;

 private:
  absl::StatusOr<exec::ActionResult> Take(const Digest& key, const std::vector<std::string>& outputs,
                                          const std::optional<remote::SharedResult>& found);

  Env& env_;
  toolchain::FileDigests& digests_;
  cache::StepStore store_;
  UpstreamCache* const upstream_;
  const LookAt look_at_;
};

}  // namespace kernix::build
