// SPDX-License-Identifier: Apache-2.0
//
// The components below the services, assembled in the order of their dependencies.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/os/env.h"
#include "daemon/app/options.h"
#include "daemon/app/own_process.h"
#include "daemon/app/sharing.h"
#include "daemon/builder/builder.h"
#include "daemon/cache/cache.h"
#include "daemon/exec/executor.h"
#include "daemon/rpc/backend.h"
#include "daemon/toolchain/toolchain.h"

namespace kernix::server {

// What serves calls: cache, executors, builder, bounds.
class DaemonParts {
 public:
  // `options`, `registry` and `stop` must outlive the object. `sharing`: what is shared with other nodes; null:
  // nothing. `reload` becomes Backend::reload.
  DaemonParts(Env& env, const ServerOptions& options, toolchain::ToolchainRegistry& registry,
              std::unique_ptr<cache::Cache> cache, std::unique_ptr<Sharing> sharing, StopRequest& stop,
              std::function<absl::StatusOr<v1::ReloadResponse>()> reload);
  DaemonParts(const DaemonParts&) = delete;
  DaemonParts& operator=(const DaemonParts&) = delete;

  Backend& backend() { return backend_; }
  const cache::Cache& cache() const { return *cache_; }

  // Writes deferred data: uses, counts and facts about compilers. Must be called from time to time, and at the end.
  void Flush();

  // Applies the reloadable settings that concern them.
  void Apply(const ServerOptions& options);

  // Logs the identities of the registered toolchains, and of the described one. A broken one does not prevent the
  // start: its files may be repaired while the daemon runs.
  void CheckToolchains(const ServerOptions& options);

 private:
  void CheckToolchain(const std::string& name, const v1::ToolchainPaths& paths, v1::Language language);

  MetricsRegistry metrics_;
  const std::unique_ptr<cache::Cache> cache_;
  toolchain::ToolchainRegistry& registry_;
  const std::unique_ptr<Sharing> sharing_;
  const std::unique_ptr<exec::Executor> executor_;
  const std::unique_ptr<exec::Executor> background_;
  build::Builder builder_;
  Backend backend_;
};

}  // namespace kernix::server
