// SPDX-License-Identifier: Apache-2.0
//
// For tests: what the services of a kernixd share.
#pragma once

#include <gtest/gtest.h>

#include "daemon/app/daemon_parts.h"
#include "tests/support/test_util.h"

namespace kernix::server {

class BackendFixture : public testing::Test {
 protected:
  ScratchDirectory scratch_;
  ServerOptions options_;
  StopRequest stop_;
  toolchain::ToolchainRegistry registry_{Env::Posix()};
  DaemonParts parts_{Env::Posix(),
                     options_,
                     registry_,
                     cache::Cache::Open(Env::Posix(), {.directory = scratch_ / "store"}).value(),
                     /*sharing=*/nullptr,
                     stop_,
                     [] {
                       v1::ReloadResponse reloaded;
                       reloaded.add_applied("jobs");
                       return reloaded;
                     }};
};

}  // namespace kernix::server
