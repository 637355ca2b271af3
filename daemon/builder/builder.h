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
#include "common/base/identity.h"
#include "common/base/metrics.h"
#include "common/os/env.h"
#include "common/os/file_identity.h"
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
  // How long a build continues after its last asker has left, for an asker who comes back (after a fork, for example).
  std::chrono::milliseconds linger{1'000};
};

class UpstreamCache;

// Takes a hit, and returns whether it was delivered.
using DeliverHit = std::function<bool(const v1::LoadResult& hit)>;

class Builder {
 public:
  // All of these must outlive the builder. `background` runs lessons, which make later builds faster, so it should take
  // nothing from `executor`. Null: no lessons. `upstream`: results shared with other nodes. Null: none.
  Builder(Env& env, BuilderOptions options, toolchain::ToolchainRegistry& toolchains, exec::Executor& executor,
          cache::Cache& cache, exec::Executor* background = nullptr, UpstreamCache* upstream = nullptr);
  // Cancels running work and waits until every Load() and LookUp() has returned.
  ~Builder();
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  // Must be called before the first Load(). The registry must not be read after the builder is destroyed.
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

  // Passes the hit that Load() would return to `deliver`, which reports whether it was delivered; only then does the
  // hit count. Asks the upstream, too, and waits for its answer until `cancellation` (may be null) fires; waits for no
  // build. If Load() would have to build, or would fail, delivers nothing. Returns true if it has delivered a hit. Does
  // not check and plan a repeated request again.
  bool LookUp(const v1::LoadRequest& request, UserId owner, const DeliverHit& deliver,
              CancellationPtr cancellation = nullptr);

  // LookUp() for a request with an earlier hit or build, if that answer is still valid: compares its files by `check`,
  // which must be younger than the request. Reads nothing else, runs nothing, and waits for no build and no other
  // toolchain. False: call LookUp().
  bool LookUpKnown(const v1::LookupRequest& lookup, UserId owner, FileCheck& check, const DeliverHit& deliver);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kernix::build
