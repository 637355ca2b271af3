// SPDX-License-Identifier: Apache-2.0
//
// A lookup without gRPC. In a fresh process, starting gRPC takes longer than the rest of a hit. So the client asks on
// the daemon's socket directly: it sends kLookupMagic, which no HTTP/2 client sends and which must arrive in one piece,
// and then one frame with a v1::LookupRequest. The daemon answers with one frame, a v1::LookupReply. The client may
// then send the next request, without the magic. The daemon closes a connection that is silent for some seconds. It
// closes without an answer if it is stopping, if the request is too long or comes before the last answer, if the user
// has too many lookups at a time, or if its build does not know the magic. A client whose connection is closed between
// two answers connects again.
//
// A frame is the length of its payload (four bytes, least significant first), followed by the payload.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/os/env.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix {

inline constexpr std::string_view kLookupMagic = "KERNIX\x01\n";

// The longest v1::LookupRequest, because many may be in progress at once. Clients send longer ones through Load.
inline constexpr size_t kMaxLookupBytes = 2 << 20;

// What asks for a load: the request's own fields, as bytes and beside them.
v1::LookupRequest LookupOf(v1::LoadRequest load);

// The load that a lookup asks for. nullopt if its bytes are no request.
std::optional<v1::LoadRequest> LoadOf(const v1::LookupRequest& lookup);

// The number of bytes before a frame's payload.
inline constexpr size_t kFrameLengthBytes = 4;

// The bytes before a payload of this size.
std::string EncodeFrameLength(size_t payload);

// Writes `prefix` and then a frame to a stream socket. Returns kUnavailable if the peer is gone, or kDeadlineExceeded.
// After the deadline, it writes what does not make it wait.
absl::Status SendFrame(int socket, std::string_view prefix, std::string_view payload, MonotonicTime deadline);

// Reads a frame, after which nothing follows. Returns kUnavailable if the peer closes the connection earlier, or
// kDeadlineExceeded; kResourceExhausted, without reading it, if it announces more than `limit` bytes. Until
// `awake_until` it asks again and again, with the processor left to others in between, instead of sleeping.
absl::StatusOr<std::string> ReceiveFrame(int socket, uint64_t limit, MonotonicTime deadline,
                                         MonotonicTime awake_until = {});

// Reads frames (quick_lookup.h) from a socket as they arrive, without waiting.
class FrameReader {
 public:
  // Drops the first `prefix` bytes. Refuses frames whose payload is longer than `limit`.
  FrameReader(size_t prefix, uint64_t limit) : prefix_(prefix), limit_(limit) {}

  // Reads what has arrived, up to some 64 KiB. True once a whole frame is there; call Take() then. kUnavailable: the
  // peer has closed the connection; kResourceExhausted: the frame announces more than the limit; kInvalidArgument:
  // something follows the frame.
  absl::StatusOr<bool> ReadSome(int socket);

  // Whether a part of a frame has arrived.
  bool begun() const { return !bytes_.empty(); }

  // The payload of the frame. The next one has no prefix.
  std::string Take();

 private:
  absl::StatusOr<bool> IsWhole() const;

  size_t prefix_;
  const uint64_t limit_;
  std::string bytes_;  // grows as they arrive: an announced length alone costs nothing
};

}  // namespace kernix
