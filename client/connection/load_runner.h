// SPDX-License-Identifier: Apache-2.0
//
// A load as the client sees it: attempts until one counts, in a thread of their own, while the caller's thread runs the
// callbacks.
#pragma once

#include "absl/status/statusor.h"
#include "client/connection/connector.h"
#include "client/connection/daemon_client.h"

namespace kernix {

// See DaemonClient::SendLoad(). `endpoint` is where to begin.
absl::StatusOr<v1::LoadResult> RunLoad(Connector& connector, const Endpoint& endpoint, const v1::LoadRequest& request,
                                       const BlobProvider& blobs, const LoadCallbacks& callbacks);

}  // namespace kernix
