// SPDX-License-Identifier: Apache-2.0
//
// Which build of kernixd listens at a socket, in a file beside it: a client of the same build need not ask the daemon,
// which would cost every process a round trip.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "daemon/base/env.h"

namespace kernix {

// "x.build" for "x.sock", else "<socket>.build".
std::string BuildRecordPath(std::string_view socket);

// Notes that process `pid`, of this build, listens at `socket`.
absl::Status WriteBuildRecord(Env& env, std::string_view socket, pid_t pid);

// Whether `pid`, which listens at `socket`, has noted that it is of this build. A record that is missing, half-written
// or of another process says no.
bool IsOfThisBuild(Env& env, std::string_view socket, pid_t pid);

}  // namespace kernix
