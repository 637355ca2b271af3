// SPDX-License-Identifier: Apache-2.0
//
// One Load call, from its request to its result.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "client/connection/fork_gate.h"
#include "client/connection/load_mailbox.h"
#include "kernix/v1/kernix.grpc.pb.h"

namespace kernix {

struct ConversationOutcome {
  absl::StatusOr<v1::LoadResult> result;
  bool daemon_lost = false;  // no answer: it may be asked again
};

// Sends `request`, uploads what the daemon asks for, and puts all other news into `mailbox`. Ends early when `section`
// is interrupted. `peer` is for messages.
ConversationOutcome ConverseAboutLoad(v1::Kernix::Stub& stub, std::string_view peer,
                                      const v1::LoadClientMessage& request, LoadMailbox& mailbox,
                                      ForkGate::Section& section);

}  // namespace kernix
