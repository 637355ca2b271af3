// SPDX-License-Identifier: Apache-2.0
//
// The one place where absl::Status and grpc::Status meet.
#pragma once

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace kernix::server {

// A gRPC status travels in headers, of which a peer takes 8 KiB. So it carries the code, the message (shortened to
// about 1 KiB where it is longer) and the kind; compiler output and command go only where a reply has room for them:
// in the `failure` event of a load.
grpc::Status ToGrpcStatus(const absl::Status& status);

// The other way: the ErrorDetail, where there is one, becomes the payload again.
absl::Status FromGrpcStatus(const grpc::Status& status);

}  // namespace kernix::server
