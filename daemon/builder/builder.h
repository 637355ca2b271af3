// SPDX-License-Identifier: Apache-2.0
//
// The middle of the daemon: from a request to an artifact, from the cache or by a build, one build for any number of
// askers.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "common/base/cancellation.h"
#include "common/os/env.h"
#include "daemon/builder/load_observer.h"
#include "daemon/cache/cache.h"
#include "daemon/exec/executor.h"
#include "daemon/request/request.h"
#include "daemon/toolchain/flags/flags.h"
#include "daemon/toolchain/toolchain.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::build {

struct BuilderOptions {
  toolchain::FlagPolicy flag_policy = toolchain::FlagPolicy::kPerUser;
  RequestLimits limits;
  std::chrono::milliseconds step_timeout{600'000};
  uint64_t max_made_bytes = 0;  // by all steps of a load together; 0: any
  // How long a build goes on after its last asker has left, so that one who comes back (after a fork, say) finds it
  // running.
  std::chrono::milliseconds linger{1'000};
};

class Builder {
 public:
  // All references must outlive the builder.
  Builder(Env& env, BuilderOptions options, toolchain::ToolchainRegistry& toolchains, exec::Executor& executor,
          cache::Cache& cache);
  // Cancels what runs, and waits until every Load() and LookUp() has returned.
  ~Builder();
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  // Blocks until the artifact is there, the build failed, or `cancellation` (may be null) fired. The life of one load:
  // resolve the toolchain, validate, key, look up (a hit's recorded toolchain headers must still have the recorded
  // content), else join the build of that key or start it. With `force_rebuild` nothing is looked up, but a build that
  // runs already is joined. `owner` is who the cache entry belongs to. kAborted when a tool or a file of flags was
  // replaced under the build, whose result nobody keeps: the client loads again.
  //
  // The last one to give up a build returns up to `linger` later than it was cancelled. Failures are not remembered.
  absl::StatusOr<v1::LoadResult> Load(v1::LoadRequest request, uid_t owner, LoadObserver& observer,
                                      CancellationPtr cancellation);

  // Gives the hit of Load() to `deliver`, which says whether it has arrived: only then it counts. Where Load() would
  // have to build, or would fail, nothing is delivered. True when something has arrived.
  bool LookUp(const v1::LoadRequest& request, uid_t owner,
              const std::function<bool(const v1::LoadResult& hit)>& deliver);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kernix::build
