// SPDX-License-Identifier: Apache-2.0
//
// The part of a load that runs in the caller's thread: it runs the callbacks.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "client/connection/daemon_client.h"
#include "client/connection/load_mailbox.h"

namespace kernix {

// Delivers the news of `mailbox` until the other thread calls Finish(), then returns that thread's result. Calls
// `callbacks.cancelled` every 50 ms, however much news there is, and returns CANCELLED if it returns true. Returns
// nullopt if a callback forked and this is the child, which does not have the other thread. In every other case, that
// thread no longer uses shared objects when this function returns, even by an exception of a callback.
std::optional<absl::StatusOr<v1::LoadResult>> AttendLoad(LoadMailbox& mailbox, const BlobProvider& blobs,
                                                         const LoadCallbacks& callbacks);

// The text of LoadCallbacks::progress.
std::string ProgressText(const v1::Progress& progress);

}  // namespace kernix
