// SPDX-License-Identifier: Apache-2.0
//
// Reads frames (quick_lookup.h) from a socket as they arrive, without waiting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace kernix {

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
