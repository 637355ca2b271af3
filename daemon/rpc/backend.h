// SPDX-License-Identifier: Apache-2.0
//
// What the services of all users share. All of it outlives them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/metrics.h"
#include "common/base/strings.h"
#include "common/os/env.h"
#include "daemon/builder/builder.h"
#include "daemon/cache/cache.h"
#include "daemon/exec/byte_quota.h"
#include "daemon/exec/executor.h"
#include "daemon/exec/sandbox.h"
#include "daemon/remote/circuit_breaker.h"
#include "daemon/remote/upstream.h"
#include "daemon/request/toolchain_policy.h"
#include "daemon/rpc/load_gate.h"
#include "daemon/rpc/service_metrics.h"
#include "daemon/toolchain/toolchain.h"

namespace kernix::server {

// Settings of the service, from the operator.
struct ServiceOptions {
  bool shared = false;
  uint64_t max_request_bytes = 0;
  int max_fetches_per_user = 0;  // at once; 0: no limit
  std::chrono::milliseconds upload_timeout{0};
  bool reads_upstream = false;
  bool writes_upstream = false;
  exec::Placements placements = {};         // where steps run
  std::vector<std::string> inherited = {};  // see GetStatusResponse
  exec::Sandbox sandbox = {};
};

struct Backend {
  Env& env;
  const ServiceOptions options;
  cache::Cache& cache;
  exec::Executor& executor;
  build::Builder& builder;
  const remote::Upstream* upstream;  // null: nothing is shared with other nodes
  const remote::WorkerPause* pause;  // of the upstream; null with it
  toolchain::ToolchainRegistry& compilers;
  ToolchainPolicy toolchains;
  LoadGate gate{};
  UserLimit loads;  // each costs a thread, and no user may take them all
  UserLimit fetches;
  exec::ByteQuota requests;
  exec::ByteQuota uploads;          // separate from the requests: a load holds one while it waits for the other
  exec::ByteQuota lists{64 << 20};  // of the cache, that a user has not read; each may be larger
  ServiceMetrics metrics{};
  const MetricsRegistry& registry;  // of all metrics
  MonotonicTime started_at;
  // Asks the daemon to drain and stop. `drain_timeout` 0: the daemon's own setting.
  std::function<void(std::string_view reason, Duration drain_timeout)> request_stop;
  // Reads the config file again; see LiveOptions::Reload().
  std::function<absl::StatusOr<v1::ReloadResponse>()> reload;
};

// If the store's files are no longer in place, closes the gate, asks the daemon to stop, and returns true: a client
// that finds the gate closed comes back to the next daemon, which makes a new store. Checks a dozen files.
inline bool LeaveLostStore(Backend& backend) {
  const std::string lost = backend.cache.FirstLost();
  if (lost.empty()) return false;
  backend.gate.Close();
  backend.request_stop(StrCat(lost, " was removed or exchanged, or became read-only"), Duration{0});
  return true;
}

}  // namespace kernix::server
