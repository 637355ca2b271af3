// SPDX-License-Identifier: Apache-2.0
//
// Converts between absl::Status and grpc::Status, for calls between clients and kernixd. daemon/remote/engine_error.h
// does it for calls of an engine. No other code does.
#pragma once

#include <grpcpp/support/status.h>

#include <string_view>

#include "absl/status/status.h"

namespace kernix {

// A gRPC status travels in headers, of which a peer accepts 8 KiB. So it carries the code, the message (shortened to
// about 1 KiB) and the kind. Compiler output and the command go only into a reply with enough room: the `failure` event
// of a load.
grpc::Status ToGrpcStatus(const absl::Status& status);

// Converts back, with the daemon's ErrorDetail if it sent one. Otherwise, the message begins with `what`, the operation
// or peer, e.g. "kernixd at /run/kernix/kernixd.sock". Records the result of DaemonWasLost().
absl::Status FromGrpcStatus(const grpc::Status& status, std::string_view what);

// Whether the call ended without an answer of the daemon, because it died or is about to stop. Callers may try again.
bool DaemonWasLost(const grpc::Status& status);
bool DaemonWasLost(const absl::Status& status);

}  // namespace kernix
