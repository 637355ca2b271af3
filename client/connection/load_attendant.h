// SPDX-License-Identifier: Apache-2.0
//
// What the thread that asked for a load does until it is over: it runs the callbacks.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "client/connection/daemon_client.h"
#include "client/connection/load_mailbox.h"

namespace kernix {

// Delivers the news of `mailbox` until the other thread calls Finish(), and gives its result; CANCELLED when
// `callbacks.cancelled` says so, which is asked every 50 ms however much news there is. Nullopt when a callback forked
// and this is the child: the other thread is not here. In every other case that thread is done with what it shares when
// this returns, also by an exception of a callback.
std::optional<absl::StatusOr<v1::LoadResult>> AttendLoad(LoadMailbox& mailbox, const BlobProvider& blobs,
                                                         const LoadCallbacks& callbacks);

// The text of LoadCallbacks::progress.
std::string ProgressText(const v1::Progress& progress);

}  // namespace kernix
