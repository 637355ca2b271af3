// SPDX-License-Identifier: Apache-2.0
//
// How a call between a client and kernixd ends, as gRPC carries it, and absl::Status.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace kernix {

// gRPC and absl number their codes alike.
struct CallStatus {
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string message;
  std::string details;  // `grpc-status-details-bin`
};

// A status travels in headers, of which a peer accepts 8 KiB. So it carries the code, the message (shortened to about
// 1 KiB) and the kind. Compiler output and the command go only into a reply with enough room: the `failure` event of a
// load.
CallStatus ToCallStatus(const absl::Status& status);

// Converts back, with the daemon's ErrorDetail if it sent one. Otherwise, the message begins with `what`, the operation
// or peer, e.g. "kernixd at /run/kernix/kernixd.sock". Records the result of DaemonWasLost().
absl::Status FromCallStatus(const CallStatus& status, std::string_view what);

// Whether the call ended without an answer of the daemon, because it died or is about to stop. Callers may try again.
bool DaemonWasLost(const absl::Status& status);

}  // namespace kernix
