// SPDX-License-Identifier: Apache-2.0
//
// The middle of the daemon: from a request to an artifact, from the cache or by a build, one build for any number of askers.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/base/cancellation.h"
#include "daemon/base/env.h"
#include "daemon/base/mutex.h"
#include "daemon/build/plan.h"
#include "daemon/build/request.h"
#include "daemon/cache/cache.h"
#include "daemon/exec/executor.h"
#include "daemon/toolchain/file_digests.h"
#include "daemon/toolchain/toolchain.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::build {

// One asker. Called from any thread, one call at a time.
class LoadObserver {
 public:
  virtual ~LoadObserver() = default;

  // Fetches header contents from the client. Blocks. Called at most once, before any progress.
  virtual absl::StatusOr<HeaderContents> FetchHeaders(const std::vector<Digest>& digests) = 0;

  virtual void OnProgress(const v1::Progress& progress) = 0;
  virtual void OnOutput(const v1::Output& output) = 0;
};

struct BuilderOptions {
  toolchain::FlagPolicy flag_policy = toolchain::FlagPolicy::kPerUser;
  RequestLimits limits;
  std::chrono::milliseconds step_timeout{600'000};
  // How long a build goes on after its last asker has left, so that one who comes back (after a fork, say) finds it running.
  std::chrono::milliseconds linger{1'000};
};

class Builder {
 public:
  // All references must outlive the builder.
  Builder(Env& env, BuilderOptions options, toolchain::ToolchainRegistry& toolchains, exec::Executor& executor,
          cache::Cache& cache);
  ~Builder();  // cancels what runs and waits

  // Blocks until the artifact is there, the build failed, or `cancellation` fired. The life of one load:
  // resolve the toolchain, validate, key, look up (a hit's recorded toolchain headers must still have the recorded content), else join
  // the build of that key or start it. `owner` is who the cache entry belongs to.
  absl::StatusOr<v1::LoadResult> Load(const v1::LoadRequest& request, uid_t owner, LoadObserver& observer,
                                      CancellationPtr cancellation);

 private:
  class Flight;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kernix::build
