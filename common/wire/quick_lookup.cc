// SPDX-License-Identifier: Apache-2.0
#include "common/wire/quick_lookup.h"

#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <string_view>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/version.h"
#include "common/os/posix_error.h"

namespace kernix {
namespace {

absl::Status Gone() { return absl::UnavailableError("the other end of the connection is gone"); }

// Waits until one of `events` is possible, or until `deadline`.
absl::Status Await(int socket, short events, MonotonicTime deadline) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return absl::DeadlineExceededError("the other end of the connection is silent");
    pollfd waiting{socket, events, 0};
    const int ready = poll(&waiting, 1, static_cast<int>(std::min<int64_t>(left.count(), 60'000)));
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) return ErrnoStatus(errno, "wait for", "a connection");
  }
}

// Call it after a failed system call. Returns OK if the caller may try again.
absl::Status AwaitAfter(int error, int socket, short events, MonotonicTime deadline) {
  if (error == EINTR) return absl::OkStatus();
  if (error == EAGAIN || error == EWOULDBLOCK) return Await(socket, events, deadline);
  if (error == EPIPE || error == ECONNRESET) return Gone();
  return ErrnoStatus(error, "use", "a connection");
}

// sendmsg() only reads it.
iovec PartOf(std::string_view bytes) { return {const_cast<char*>(bytes.data()), bytes.size()}; }

// The length of a payload, from the kFrameLengthBytes before it.
uint64_t DecodeFrameLength(std::string_view bytes) {
  uint64_t length = 0;
  for (size_t i = 0; i < kFrameLengthBytes; ++i) length |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return length;
}

}  // namespace

v1::LookupRequest LookupOf(v1::LoadRequest load) {
  v1::LookupRequest lookup;
  lookup.set_build_id(BuildId());
  lookup.mutable_name()->swap(*load.mutable_name());
  lookup.mutable_toolchain()->Swap(load.mutable_toolchain());
  lookup.set_batch(load.batch());
  lookup.set_only_cached(load.only_cached());
  lookup.set_language(load.language());
  load.clear_name();
  load.clear_toolchain();
  load.clear_batch();
  load.clear_only_cached();
  load.clear_frozen();  // it says nothing of a load that needs no build
  lookup.set_load(load.SerializeAsString());
  return lookup;
}

std::optional<v1::LoadRequest> LoadOf(const v1::LookupRequest& lookup) {
  v1::LoadRequest load;
  if (!load.ParseFromString(lookup.load())) return std::nullopt;
  load.set_name(lookup.name());
  *load.mutable_toolchain() = lookup.toolchain();
  load.set_batch(lookup.batch());
  load.set_only_cached(lookup.only_cached());
  load.set_language(lookup.language());
  return load;
}

std::string EncodeFrameLength(size_t payload) {
  std::string head;
  for (size_t i = 0; i < kFrameLengthBytes; ++i) head += static_cast<char>(payload >> (8 * i) & 0xff);
  return head;
}

absl::Status SendFrame(int socket, std::string_view prefix, std::string_view payload, MonotonicTime deadline) {
  std::string head = StrCat(prefix, EncodeFrameLength(payload.size()));
  while (!head.empty() || !payload.empty()) {
    std::array<iovec, 2> parts = {PartOf(head), PartOf(payload)};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const ssize_t count = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) {
      const size_t of_head = std::min(head.size(), static_cast<size_t>(count));
      head.erase(0, of_head);
      payload.remove_prefix(static_cast<size_t>(count) - of_head);
    } else {
      KERNIX_RETURN_IF_ERROR(AwaitAfter(errno, socket, POLLOUT, deadline));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReceiveFrame(int socket, uint64_t limit, MonotonicTime deadline,
                                         MonotonicTime awake_until) {
  FrameReader reader(/*prefix=*/0, limit);
  while (true) {
    KERNIX_ASSIGN_OR_RETURN(const bool whole, reader.ReadSome(socket));
    if (whole) return reader.Take();
    if (std::chrono::steady_clock::now() < awake_until) {
      sched_yield();
    } else {
      KERNIX_RETURN_IF_ERROR(Await(socket, POLLIN, deadline));
    }
  }
}

absl::StatusOr<bool> FrameReader::ReadSome(int socket) {
  std::array<char, 64 << 10> chunk;
  const ssize_t count = recv(socket, chunk.data(), chunk.size(), MSG_DONTWAIT);
  if (count > 0) {
    bytes_.append(chunk.data(), static_cast<size_t>(count));
    return IsWhole();
  }
  if (count == 0 || errno == ECONNRESET) return Gone();
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
