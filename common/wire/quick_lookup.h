// SPDX-License-Identifier: Apache-2.0
//
// The question of a client that hopes for a hit. To start gRPC takes a fresh process longer than everything else about
// a hit, so this is asked on the daemon's socket without it: the client's first bytes are kLookupMagic, which no HTTP/2
// client sends and which has to come in one piece, then one frame with a v1::LookupRequest. The daemon answers with one
// frame, a v1::LookupReply, and closes; or it closes at once: it stops, the request is too long, the user asks too much
// at a time, or it is of a build that does not know the magic.
//
// A frame is the length of its payload, four bytes, least significant first, and the payload.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/os/env.h"

namespace kernix {

inline constexpr std::string_view kLookupMagic = "KERNIX\x01\n";

// Longest v1::LookupRequest: many may be under way at once. What is longer is asked for through Load.
inline constexpr size_t kMaxLookupBytes = 2 << 20;

// Writes `prefix` and then a frame to a stream socket. kUnavailable when the other end is gone, kDeadlineExceeded.
absl::Status SendFrame(int socket, std::string_view prefix, std::string_view payload, MonotonicTime deadline);

// Reads `size` bytes. kUnavailable when the other end is gone before, kDeadlineExceeded.
absl::StatusOr<std::string> ReceiveBytes(int socket, size_t size, MonotonicTime deadline);

// Reads a frame. kResourceExhausted, unread, when it announces more than `limit` bytes.
absl::StatusOr<std::string> ReceiveFrame(int socket, uint64_t limit, MonotonicTime deadline);

}  // namespace kernix
