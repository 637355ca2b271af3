// SPDX-License-Identifier: Apache-2.0
//
// Finds the heads of HTTP/2 frames in what one end of a connection sends, in pieces of any size.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/functional/function_ref.h"

namespace kernix::server {

enum class FrameType : uint8_t { kData = 0, kHeaders = 1, kReset = 3, kPing = 6, kContinuation = 9 };

struct FrameHead {
  uint32_t length = 0;  // of the payload, in bytes
  FrameType type{};     // may be none of the above
  uint8_t flags = 0;
  uint32_t stream = 0;

  bool ends_stream() const;                               // DATA or HEADERS, as the last of its sender
  bool acknowledges() const { return (flags & 1) != 0; }  // of a PING
};

// Not thread-safe. Bytes that are no HTTP/2 make nonsense of heads, and no harm.
class FrameReader {
 public:
  // The first `preface` bytes are no frames.
  explicit FrameReader(uint32_t preface) : skip_(preface) {}

  // Calls `seen` for each head that is complete with `bytes`, before its payload is.
  void Read(std::string_view bytes, absl::FunctionRef<void(const FrameHead&)> seen);

 private:
  static constexpr size_t kHeadBytes = 9;

  void Skip(std::string_view& bytes);
  void Collect(std::string_view& bytes);
  FrameHead Head() const;

  uint32_t skip_;  // bytes until the next head
  std::array<uint8_t, kHeadBytes> head_{};
  size_t collected_ = 0;  // bytes of `head_`
};

}  // namespace kernix::server
