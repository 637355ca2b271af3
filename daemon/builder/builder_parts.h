// SPDX-License-Identifier: Apache-2.0
//
// What the loads, the lookups and the builds of one builder share.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "common/os/env.h"
#include "daemon/builder/flights.h"
#include "daemon/builder/known_loads.h"
#include "daemon/builder/step_cache.h"
#include "daemon/builder/step_runner.h"
#include "daemon/builder/upstream_cache.h"
#include "daemon/cache/cache.h"
#include "daemon/exec/byte_quota.h"
#include "daemon/exec/executor.h"
#include "daemon/plan/include_roots.h"
#include "daemon/plan/plan.h"
#include "daemon/plan/shortcuts.h"
#include "daemon/request/request.h"
#include "daemon/toolchain/flags/flags.h"
#include "daemon/toolchain/toolchain.h"

namespace kernix::build {

struct BuilderOptions {
  toolchain::FlagPolicy flag_policy = toolchain::FlagPolicy::kPerUser;
  RequestLimits limits;
  std::chrono::milliseconds step_timeout{600'000};
  Shortcuts disabled;
  WorkerTools workers;                   // that may run steps
  bool builds_described = false;         // with a toolchain that is only described: workers may run steps of every kind
  uint64_t max_made_bytes = 0;           // limit for the outputs of all steps of a load together; 0: no limit
  uint64_t max_held_bytes_per_user = 0;  // the same of all loads of a user that have not ended
  // How long a build continues after its last asker has left, for an asker who comes back (after a fork, for example).
  std::chrono::milliseconds linger{1'000};
};

struct BuilderParts {
  // All of these must outlive the object. `background` runs lessons, which make later builds faster, so it should take
  // nothing from the executor. Null: no lessons. `u`: results shared with other nodes. Null: none.
  BuilderParts(Env& e, BuilderOptions o, toolchain::ToolchainRegistry& t, exec::Executor& x, cache::Cache& c,
               exec::Executor* background = nullptr, UpstreamCache* u = nullptr)
      : env(e),
        options(std::move(o)),
        toolchains(t),
        executor(x),
        cache(c),
        upstream(u),
        lessons(background != nullptr ? std::make_unique<StepRunner>(env, *background, step_cache) : nullptr) {}

  // What is in the cache. Does not count.
  std::optional<KnownHit> Find(const KnownLoad& load, UserId owner);
  // The same, as a hit. Nothing if the load forces a build.
  std::optional<v1::LoadResult> FindAndCount(const PlannedLoad& load);
  v1::LoadResult ResultOf(const KnownLoad& load, const cache::Entry& entry) const;

  PlanLimits plan_limits() const { return {.step_timeout = options.step_timeout, .workers = options.workers}; }
  bool CanBuildWith(const toolchain::Toolchain& tools) const {
    return tools.described == nullptr || options.builds_described;
  }
  bool shared() const { return options.flag_policy == toolchain::FlagPolicy::kShared; }
  LookAt look_at() const { return shared() ? LookAt::kToolchain : LookAt::kAll; }

  // On disk: the steps of a few hundred kernels.
  static constexpr uint64_t kStepCacheBytes = 256 << 20;
  // On disk: some large trees.
  static constexpr uint64_t kHeaderTreeBytes = 256 << 20;
  // Each takes a few hundred bytes, and KnownLoads::kMostWarningBytes at most.
  static constexpr size_t kKnownLoads = 4096;

  Env& env;
  const BuilderOptions options;
  toolchain::ToolchainRegistry& toolchains;
  exec::Executor& executor;
  cache::Cache& cache;
  UpstreamCache* const upstream;  // null: nothing is shared with other nodes
  StepCache step_cache{env, toolchains.digests(), cache.steps_directory(), kStepCacheBytes, upstream, look_at()};
  const std::shared_ptr<exec::ByteQuota> held_bytes =
      std::make_shared<exec::ByteQuota>(options.max_held_bytes_per_user);
  const std::unique_ptr<StepRunner> lessons;  // null: nothing is learned
  StepRunner step_runner{env, executor, step_cache, lessons.get(), options.disabled};
  HeaderTrees header_trees{kHeaderTreeBytes};
  KnownLoads known_loads{kKnownLoads};
  Flights flights{env, options.linger};
};

}  // namespace kernix::build
