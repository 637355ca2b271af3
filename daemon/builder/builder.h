// SPDX-License-Identifier: Apache-2.0
//
// The core of the daemon: turns a request into an artifact, from the cache or by a build. Concurrent loads of one key
// share one build.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/cancellation.h"
#include "common/base/identity.h"
#include "common/base/metrics.h"
#include "common/os/env.h"
#include "common/os/file_identity.h"
#include "daemon/builder/flight.h"
#include "daemon/builder/header_cache.h"
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
#include "kernix/v1/kernix.pb.h"

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

// What the loads, the lookups and the builds of one builder share.
struct BuilderParts {
  // All of these must outlive the object. `background`: see StepRunner. `u`: results shared with other nodes. Null:
  // none.
  BuilderParts(Env& e, BuilderOptions o, toolchain::ToolchainRegistry& t, exec::Executor& x, cache::Cache& c,
               exec::Executor* background = nullptr, UpstreamCache* u = nullptr)
      : env(e),
        options(std::move(o)),
        toolchains(t),
        executor(x),
        cache(c),
        upstream(u),
        step_runner(env, x, step_cache, background, options.disabled) {}

  // What is in the cache. Does not count.
  std::optional<KnownHit> Find(const PlannedLoad& load);
  // The same, as a hit. Nothing if the load forces a build.
  std::optional<v1::LoadResult> FindAndCount(const PlannedLoad& load);
  v1::LoadResult ResultOf(const PlannedLoad& load, const cache::Entry& entry) const;

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
  // Each takes a few hundred bytes, and KnownLoads::kMostHitBytes at most.
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
  StepRunner step_runner;
  exec::KeptTrees header_trees{kHeaderTreeBytes};
  KnownLoads known_loads{kKnownLoads};
  Flights flights{options.linger};
};

// Takes a hit, and returns whether it was delivered.
using DeliverHit = std::function<bool(const v1::LoadResult& hit)>;

class Builder : private BuilderParts {
 public:
  using BuilderParts::BuilderParts;
  // Cancels running work and waits until every Load() and LookUp() has returned.
  ~Builder();
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  // Must be called before the first Load().
  void Register(MetricsRegistry& registry) const;

  // The number of running and waiting lessons.
  size_t LessonsLeft() const;

  // Removes the kept results of steps. Later builds make them again.
  void ForgetSteps();

  // Blocks until the artifact is available, the build has failed, or `cancellation` (may be null) has fired. A load
  // goes through these stages: resolve the toolchain, validate, make the key, look it up (a hit requires that the
  // recorded toolchain headers still have the recorded content), otherwise join the build of that key or start it: it
  // takes the upstream's result, or builds. With `force_rebuild` there is no lookup, and no result of an earlier step,
  // but the load joins a running build. If it has compilers, it does not join a build that only workers can run. With
  // `only_cached`, it joins a running build or takes the upstream's result, and otherwise returns NOT_CACHED. A load
  // with a described toolchain does the same, unless the options say that it builds. The entry gets a tag of `owner`.
  // kAborted if a tool or a flag's file was replaced during the build; the builder discards the result, and the client
  // loads again.
  //
  // When the last asker gives up, its call returns up to `linger` after the cancellation. The builder does not remember
  // failures.
  absl::StatusOr<v1::LoadResult> Load(v1::LoadRequest request, UserId owner, LoadObserver& observer,
                                      CancellationPtr cancellation);

  // Passes the hit that Load() would find in the cache to `deliver`, which reports whether it was delivered; only then
  // does the hit count. Waits for no build, and asks no other node. If Load() would have to do more, or would fail,
  // delivers nothing. Returns true if it has delivered a hit.
  bool LookUp(const v1::LoadRequest& request, UserId owner, const DeliverHit& deliver);

  // LookUp() for a request with an earlier hit or build, if that answer is still valid: compares its files by `check`,
  // which must be younger than the request. Reads nothing else, runs nothing, and waits for no build and no other
  // toolchain. False: call LookUp().
  bool LookUpKnown(const v1::LookupRequest& lookup, UserId owner, FileCheck& check, const DeliverHit& deliver);

 private:
  // Waits until few enough of the user's loads are being planned.
  std::unique_ptr<exec::ByteQuota::Share> TurnToPlan(UserId user);
  // With the compilers that have filled the store instead of compilers: for those of them that have built this load.
  absl::StatusOr<std::shared_ptr<PlannedLoad>> Prepare(const v1::LoadRequest& request, UserId owner,
                                                       toolchain::ToolchainPtr toolchain);
  absl::StatusOr<std::shared_ptr<PlannedLoad>> PrepareFor(const v1::LoadRequest& request, UserId owner,
                                                          toolchain::ToolchainPtr toolchain);
  // Lends the artifact to the load's user, and notes the tag.
  absl::Status GiveOut(const PlannedLoad& load, const v1::LoadResult& result);
  absl::StatusOr<v1::LoadResult> Fly(const std::shared_ptr<PlannedLoad>& load, const FlightPtr& flight,
                                     LoadObserver& observer, const CancellationPtr& cancellation);
  // Must be called when an asker has joined others or left them. Without memory, positions stay as they were.
  void MoveInQueue(const Flight& flight);
  // Waits until few enough of the user's loads, of batches or not, wait for builds. Null: it is cancelled first.
  std::unique_ptr<exec::ByteQuota::Share> SlotForBuild(const PlannedLoad& load, const CancellationPtr& cancellation);
  // Begins the build, in a thread of its own. From here on, the load's plan and what is set when a build starts are the
  // build's. The asker reads the rest.
  void StartBuild(const std::shared_ptr<PlannedLoad>& load, const FlightPtr& flight, HeaderContents contents);

  // Enough for the headers that a medium-sized project includes repeatedly.
  static constexpr uint64_t kHeaderCacheBytes = 32 << 20;
  // Loads of one user. It takes milliseconds, but up to a hundred megabytes for a hostile request.
  static constexpr uint64_t kPlannedAtOnce = 4;
  // Loads of one user, in batches and besides: each build has some threads.
  static constexpr uint64_t kBuildsAtOnce = 256;

  HeaderCache header_cache_{kHeaderCacheBytes};
  exec::ByteQuota planning_{kPlannedAtOnce};  // of loads, not bytes
  exec::ByteQuota builds_{kBuildsAtOnce};
  exec::ByteQuota batch_builds_{kBuildsAtOnce};
};

}  // namespace kernix::build
