// SPDX-License-Identifier: Apache-2.0
//
// Where an engine listens, as users write it.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace kernix::remote {

struct EngineAddress {
  std::string target;  // as gRPC names it
  bool tls = false;
  bool on_this_host = false;  // nobody can overhear the bytes sent there
};

// Reads grpc://HOST:PORT, grpcs://HOST:PORT or unix:///PATH. Otherwise INVALID_REQUEST with the reason.
absl::StatusOr<EngineAddress> ParseEngineAddress(const std::string& address);

}  // namespace kernix::remote
