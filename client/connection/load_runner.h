// SPDX-License-Identifier: Apache-2.0
//
// Runs a load as the client sees it: makes attempts until one counts.
#pragma once

#include "absl/status/statusor.h"
#include "client/connection/connector.h"
#include "client/connection/daemon_client.h"

namespace kernix {

// See DaemonClient::SendLoad(). `endpoint` is the first endpoint to try.
absl::StatusOr<v1::LoadResult> RunLoad(Connector& connector, Endpoint endpoint, const v1::LoadRequest& request,
                                       const BlobProvider& blobs, const LoadCallbacks& callbacks);

}  // namespace kernix
