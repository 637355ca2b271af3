// SPDX-License-Identifier: Apache-2.0
//
// Routes gRPC's log into ours.
#pragma once

namespace kernix::server {

// Process-wide. Logs gRPC's errors as warnings: a failure of one connection is not an error of the daemon.
void RouteGrpcLog();

}  // namespace kernix::server
