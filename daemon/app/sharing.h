// SPDX-License-Identifier: Apache-2.0
//
// What this node shares with others, from the settings of the table [upstream].
#pragma once

#include <memory>
#include <optional>
#include <thread>

#include "absl/status/statusor.h"
#include "common/base/cancellation.h"
#include "common/base/metrics.h"
#include "common/os/env.h"
#include "daemon/app/options.h"
#include "daemon/builder/upstream_cache.h"
#include "daemon/exec/executor.h"
#include "daemon/remote/circuit_breaker.h"
#include "daemon/remote/shared_results.h"
#include "daemon/remote/upstream.h"
#include "daemon/toolchain/toolchain.h"

namespace kernix::server {

class Sharing {
 public:
  // Reads the files that the settings name; connects later. INVALID_REQUEST, with the setting, if one of them is not
  // what it should be. Null without an address: this node shares nothing.
  static absl::StatusOr<std::unique_ptr<Sharing>> Open(Env& env, const ServerOptions& options);

  // Must be called once, before the others. `digests` must outlive this object. Warns in the log if this node would not
  // believe itself.
  void Start(Env& env, toolchain::FileDigests& digests);

  const remote::Upstream& upstream() const { return *upstream_; }
  const remote::WorkerPause& pause() const { return pause_; }

  // Runs steps on this machine, by `local`, and on the engine's workers, as the settings say. Without steps for
  // workers: `local` itself. The executor must be destroyed before this object. It registers its metrics, unless it is
  // `local`.
  std::unique_ptr<exec::Executor> Place(Env& env, const ServerOptions& options, std::unique_ptr<exec::Executor> local,
                                        MetricsRegistry& registry);
  build::UpstreamCache& cache() { return *cache_; }

  // The registry must not be read after this object is destroyed.
  void Register(MetricsRegistry& registry) const;

  // Asks the engine for its capabilities, in a thread of its own, so nobody else waits for that: not the first load,
  // nor the start or the end of the daemon. Must be called at most once, after Register(). Without a thread to be had,
  // does nothing: the first load asks.
  void AskEngine();

  // Ends the question, and waits for its thread.
  ~Sharing();
  Sharing(const Sharing&) = delete;
  Sharing& operator=(const Sharing&) = delete;

 private:
  Sharing(Env& env, std::unique_ptr<remote::Upstream> upstream, remote::SharingTrust trust,
          build::UpstreamCacheOptions options)
      : believes_itself_(trust.trusted.empty() ||
                         (trust.signs_with && trust.trusted.Has(trust.signs_with->public_key()))),
        upstream_(std::move(upstream)),
        results_(*upstream_, std::move(trust)),
        claims_(*upstream_, NameOfThisProcess()),
        pause_(env),
        options_(std::move(options)) {}
  static std::string NameOfThisProcess();

  const bool believes_itself_;  // takes from the engine what it has written there
  const std::unique_ptr<remote::Upstream> upstream_;
  remote::SharedResults results_;
  remote::BuildClaims claims_;
  remote::WorkerPause pause_;
  const build::UpstreamCacheOptions options_;
  std::optional<build::UpstreamCache> cache_;
  Cancellation stopping_;
  std::thread question_;
};

}  // namespace kernix::server
