// SPDX-License-Identifier: Apache-2.0
//
// The one place where absl::Status and grpc::Status meet.
#pragma once

#include <grpcpp/support/status.h>

#include <string_view>

#include "absl/status/status.h"

namespace kernix {

// A gRPC status travels in headers, of which a peer takes 8 KiB. So it carries the code, the message (shortened to
// about 1 KiB where it is longer) and the kind; compiler output and command go only where a reply has room for them:
// in the `failure` event of a load.
grpc::Status ToGrpcStatus(const absl::Status& status);

// The other way, with the daemon's ErrorDetail when it sent one. Otherwise the message begins with `what`, what was
// being done: "kernixd at /run/kernix/kernixd.sock". Remembers DaemonWasLost().
absl::Status FromGrpcStatus(const grpc::Status& status, std::string_view what);

// True when the call did not end by an answer of the daemon: it died, or is about to stop. Asking again makes sense.
bool DaemonWasLost(const grpc::Status& status);
bool DaemonWasLost(const absl::Status& status);

}  // namespace kernix
