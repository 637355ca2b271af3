// SPDX-License-Identifier: Apache-2.0
//
// The one place where a client turns what gRPC says into absl::Status.
#pragma once

#include <grpcpp/support/status.h>

#include <string_view>

#include "absl/status/status.h"

namespace kernix {

// Remembers DaemonWasLost(). With the daemon's ErrorDetail when it sent one. Otherwise the message begins with `what`,
// what was being done: "kernixd at /run/kernix/kernixd.sock".
absl::Status StatusFromGrpc(const grpc::Status& status, std::string_view what);

// True when the call did not end by an answer of the daemon: it died, or is about to stop. Asking again makes sense.
bool DaemonWasLost(const grpc::Status& status);
bool DaemonWasLost(const absl::Status& status);

}  // namespace kernix
