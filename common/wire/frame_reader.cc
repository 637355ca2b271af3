// SPDX-License-Identifier: Apache-2.0
#include "common/wire/frame_reader.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "common/base/strings.h"
#include "common/os/posix_error.h"
#include "common/wire/quick_lookup.h"

namespace kernix {

absl::StatusOr<bool> FrameReader::ReadSome(int socket) {
  std::array<char, 64 << 10> chunk;
  const ssize_t count = recv(socket, chunk.data(), chunk.size(), MSG_DONTWAIT);
  if (count > 0) {
    bytes_.append(chunk.data(), static_cast<size_t>(count));
    return IsWhole();
  }
  if (count == 0 || errno == ECONNRESET) return absl::UnavailableError("the other end of the connection is gone");
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return false;
  return ErrnoStatus(errno, "use", "a connection");
}

absl::StatusOr<bool> FrameReader::IsWhole() const {
  const size_t head = prefix_ + kFrameLengthBytes;
  if (bytes_.size() < head) return false;
  const uint64_t size = DecodeFrameLength(std::string_view(bytes_).substr(prefix_));
  if (size > limit_) {
    return absl::ResourceExhaustedError(StrCat("a message of ", size, " bytes; the limit is ", limit_, " bytes"));
  }
  if (bytes_.size() > head + size) return absl::InvalidArgumentError("a message came before the last one's answer");
  return bytes_.size() == head + size;
}

std::string FrameReader::Take() {
  std::string payload = std::exchange(bytes_, {});
  payload.erase(0, std::exchange(prefix_, 0) + kFrameLengthBytes);
  return payload;
}

}  // namespace kernix
