// SPDX-License-Identifier: Apache-2.0
#include "daemon/transport/frame_reader.h"

#include <algorithm>

namespace kernix::server {

bool FrameHead::ends_stream() const {
  return (type == FrameType::kData || type == FrameType::kHeaders) && (flags & 1) != 0;
}

void FrameReader::Read(std::string_view bytes, absl::FunctionRef<void(const FrameHead&)> seen) {
  while (true) {
    Skip(bytes);
    Collect(bytes);
    if (collected_ < kHeadBytes) return;
    const FrameHead head = Head();
    collected_ = 0;
    skip_ = head.length;
    seen(head);
  }
}

void FrameReader::Skip(std::string_view& bytes) {
  const size_t size = std::min<size_t>(bytes.size(), skip_);
  skip_ -= size;
  bytes.remove_prefix(size);
}

void FrameReader::Collect(std::string_view& bytes) {
  const size_t size = std::min(bytes.size(), kHeadBytes - collected_);
  std::copy_n(bytes.begin(), size, head_.begin() + collected_);
  collected_ += size;
  bytes.remove_prefix(size);
}

FrameHead FrameReader::Head() const {
  const auto& h = head_;
  constexpr uint32_t kStreamBits = 0x7fffffff;
  return {.length = uint32_t{h[0]} << 16 | uint32_t{h[1]} << 8 | h[2],
          .type = static_cast<FrameType>(h[3]),
          .flags = h[4],
          .stream = (uint32_t{h[5]} << 24 | uint32_t{h[6]} << 16 | uint32_t{h[7]} << 8 | h[8]) & kStreamBits};
}

}  // namespace kernix::server
