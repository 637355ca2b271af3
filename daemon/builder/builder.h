// SPDX-License-Identifier: Apache-2.0
//
// The core of the daemon: turns a request into an artifact, from the cache or by a build. Concurrent loads of one key
// share one build.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "common/base/cancellation.h"
#include "common/base/metrics.h"
#include "common/base/user_id.h"
#include "common/os/env.h"
#include "common/os/file_check.h"
#include "daemon/builder/load_observer.h"
#include "daemon/cache/cache.h"
#include "daemon/exec/executor.h"
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
  // How long a build continues after its last asker has left, so that an asker who comes back (after a fork, for
  // example) finds it running.
  std::chrono::milliseconds linger{1'000};
};

class UpstreamCache;

// Takes a hit, and returns whether it was delivered.
using DeliverHit = std::function<bool(const v1::LoadResult& hit)>;

class Builder {
 public:
  // All of these must outlive the builder. `background` runs what makes later builds faster, so it should take nothing
  // from `executor`. Null: builds teach nothing. `upstream`: what this node shares with others. Null: nothing.
  Builder(Env& env, BuilderOptions options, toolchain::ToolchainRegistry& toolchains, exec::Executor& executor,
          cache::Cache& cache, exec::Executor* background = nullptr, UpstreamCache* upstream = nullptr);
  // Cancels running work and waits until every Load() and LookUp() has returned.
  ~Builder();
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  // Must be called before the first Load(). The registry must not be read after the builder is destroyed.
  void Register(MetricsRegistry& registry) const;

  // How much of what builds teach is being learned, or waits for that.
  size_t LessonsLeft() const;

  // Removes the kept results of steps. Later builds make them again.
  void ForgetSteps();

  // Blocks until the artifact is available, the build has failed, or `cancellation` (may be null) has fired. A load
  // goes through these stages: resolve the toolchain, validate, make the key, look it up (a hit requires that the
  // recorded toolchain headers still have the recorded content), otherwise join the build of that key or start it: it
  // takes what the upstream has, or builds. With `force_rebuild` there is no lookup, and no result of an earlier step,
  // but the load joins a build that already runs. It does not join one that only workers can run, if it has compilers.
  // With `only_cached` it joins a build that runs or takes what the upstream has, and otherwise returns NOT_CACHED; so
  // it does with a toolchain that is only described, unless the options say that it builds. `owner` is the user whose
  // tag the entry gets. kAborted if a tool or a flag's file was replaced during the build; the builder discards the
  // result, and the client loads again.
  //
  // When the last asker gives up, its call returns up to `linger` after the cancellation. The builder does not remember
  // failures.
  absl::StatusOr<v1::LoadResult> Load(v1::LoadRequest request, UserId owner, LoadObserver& observer,
                                      CancellationPtr cancellation);

  // Passes the hit that Load() would return to `deliver`, which reports whether it was delivered; only then does the
  // hit count. Takes what the upstream has, and waits for that until `cancellation` (may be null) fires; but for no
  // build. If Load() would have to build, or would fail, nothing is delivered. Returns true if something was delivered.
  // A request that was looked up before is not checked and planned again.
  bool LookUp(v1::LoadRequest request, UserId owner, const DeliverHit& deliver, CancellationPtr cancellation = nullptr);

  // LookUp() for a request that it has delivered a hit for, or that Load() has built, if the answer is still right:
  // compares the files that it follows from with `check`, which must be younger than the request. Reads nothing else,
  // runs nothing, and waits for no build and no other toolchain. False: ask LookUp(). `request` is unchanged on return.
  bool LookUpKnown(v1::LoadRequest& request, UserId owner, FileCheck& check, const DeliverHit& deliver);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kernix::build
