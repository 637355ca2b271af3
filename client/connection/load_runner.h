// SPDX-License-Identifier: Apache-2.0
//
// Runs a load as the client sees it: makes attempts in a separate thread until one counts, while the caller's thread
// runs the callbacks.
#pragma once

#include "absl/status/statusor.h"
#include "client/connection/connector.h"
#include "client/connection/daemon_client.h"

namespace kernix {

// See DaemonClient::SendLoad(). `endpoint` is the first endpoint to try.
absl::StatusOr<v1::LoadResult> RunLoad(Connector& connector, const Endpoint& endpoint, const v1::LoadRequest& request,
                                       const BlobProvider& blobs, const LoadCallbacks& callbacks);

}  // namespace kernix
