// SPDX-License-Identifier: Apache-2.0
//
// Repeats recorded loads, of a manifest or of a program's history.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "client/connection/daemon_client.h"
#include "client/kernixctl/batch.h"
#include "client/kernixctl/command.h"
#include "client/load/recording.h"
#include "kernix/load.h"

namespace kernix::ctl {

struct ReplayFlags {
  std::vector<std::string> site_packages;
  uint32_t at_once = kLoadsAtOnce;
  bool json = false;
};

// --json
Option JsonPerModule(bool& json);

// WithClient() for a replay, which Ctrl-C cancels.
int WithReplayClient(const ClientOptions& options, const ReplayFlags& flags,
                     const std::function<int(DaemonClient&)>& use);

// Has the daemon build or find all loads, in this order, and prints each one and a report, as RunBatch() does. Without
// `policy`, $KERNIX_POLICY counts.
int Replay(DaemonClient& daemon, const Recording& recording, std::optional<LoadPolicy> policy,
           const ReplayFlags& flags);

}  // namespace kernix::ctl
