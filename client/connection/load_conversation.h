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
  bool daemon_lost = false;  // there was no answer; the caller may try again
};

// Sends `request`, uploads the headers that the daemon requests, and puts all other news into `mailbox`. Ends early if
// `section` is interrupted. `peer` is for messages.
ConversationOutcome ConverseAboutLoad(v1::Kernix::Stub& stub, std::string_view peer,
                                      const v1::LoadClientMessage& request, LoadMailbox& mailbox,
                                      ForkGate::Section& section);

}  // namespace kernix
