// SPDX-License-Identifier: Apache-2.0
//
// What gRPC says, as log lines of ours.
#pragma once

namespace kernix::server {

// Process-wide. gRPC's errors become warnings: what goes wrong on one connection is no error of the daemon.
void RouteGrpcLog();

}  // namespace kernix::server
