// SPDX-License-Identifier: Apache-2.0
//
// What the services of all users share. Everything outlives them.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>

#include "daemon/base/env.h"
#include "daemon/build/builder.h"
#include "daemon/cache/cache.h"
#include "daemon/exec/executor.h"
#include "daemon/server/byte_quota.h"
#include "daemon/server/load_gate.h"
#include "daemon/server/options.h"
#include "daemon/server/toolchain_policy.h"
#include "daemon/server/user_limit.h"

namespace kernix::server {

struct Backend {
  Env& env;
  const ServerOptions& options;
  cache::Cache& cache;
  exec::Executor& executor;
  build::Builder& builder;
  ToolchainPolicy& toolchains;
  LoadGate& gate;
  UserLimit& fetches;
  ByteQuota& requests;
  ByteQuota& uploads;  // apart from the requests: a load holds one while it waits for the other
  MonotonicTime started_at;
  // Asks the daemon to drain and stop. `drain_timeout` 0: its own setting.
  std::function<void(std::string_view reason, Duration drain_timeout)> request_stop;

  // Whether `user` may do what concerns everybody: see and drop the entries of all, have their artifacts, stop the
  // daemon. Root, the daemon's own user, and who is in `admin_group` by now.
  bool MayAdminister(uid_t user) const;
};

}  // namespace kernix::server
