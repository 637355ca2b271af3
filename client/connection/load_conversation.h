// SPDX-License-Identifier: Apache-2.0
//
// One Load call, from its request to its result.
#pragma once

#include "absl/status/statusor.h"
#include "client/connection/caller.h"
#include "client/connection/connector.h"
#include "client/connection/daemon_client.h"

namespace kernix {

struct ConversationOutcome {
  absl::StatusOr<v1::LoadResult> result;
  bool daemon_lost = false;  // there was no answer; the caller may try again
};

// Sends `request`, uploads the headers that the daemon requests, and runs `callbacks` for all other news. Ends early,
// with some error, if `caller` gives up.
ConversationOutcome ConverseAboutLoad(const Session& session, const v1::LoadClientMessage& request,
                                      const BlobProvider& blobs, const LoadCallbacks& callbacks, Caller& caller);

// The text of LoadCallbacks::progress.
std::string ProgressText(const v1::Progress& progress);

}  // namespace kernix
