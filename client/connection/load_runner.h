// SPDX-License-Identifier: Apache-2.0
//
// Runs a load as the client sees it: makes attempts, each of them one Load call, until one counts.
#pragma once

#include <chrono>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/connection/connector.h"
#include "client/connection/daemon_client.h"
#include "client/connection/grpc_call.h"

namespace kernix {

// One Load call, from its request to its result.
struct ConversationOutcome {
  absl::StatusOr<v1::LoadResult> result;
  bool daemon_lost = false;  // there was no answer; the caller may try again
};

// Sends `request`, uploads the headers that the daemon requests, and runs `callbacks` for all other news. Ends early,
// with some error, if `caller` gives up.
ConversationOutcome ConverseAboutLoad(const Session& session, const v1::LoadClientMessage& request,
                                      const BlobProvider& blobs, const LoadCallbacks& callbacks, Caller& caller);

// See DaemonClient::SendLoad(). `endpoint` is the first endpoint to try.
absl::StatusOr<v1::LoadResult> RunLoad(Connector& connector, Endpoint endpoint, const v1::LoadRequest& request,
                                       const BlobProvider& blobs, const LoadCallbacks& callbacks);

}  // namespace kernix
