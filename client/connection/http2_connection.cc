// SPDX-License-Identifier: Apache-2.0
#include "client/connection/http2_connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace kernix {
namespace {

// How much the peer may send ahead of us.
constexpr int32_t kWindow = 4 << 20;

// How much is read or sent by one system call.
constexpr size_t kPiece = 64 << 10;

absl::Status Ended(std::string_view how) { return absl::UnavailableError(StrCat("the connection has ended: ", how)); }

bool WouldBlock(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

uint8_t* Bytes(std::string_view text) { return reinterpret_cast<uint8_t*>(const_cast<char*>(text.data())); }

}  // namespace

// nghttp2's, for the stream of the current request. They must not throw.
struct Http2Connection::Callbacks {
  static Http2Connection& Self(void* user) { return *static_cast<Http2Connection*>(user); }

  static int OnHeader(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
                      const uint8_t* value, size_t value_size, uint8_t, void* user) {
    Http2Connection& self = Self(user);
    if (frame->hd.stream_id != self.stream_) return 0;
    self.response_.fields[std::string(reinterpret_cast<const char*>(name), name_size)] =
        std::string(reinterpret_cast<const char*>(value), value_size);
    return 0;
  }

  static int OnData(nghttp2_session*, uint8_t, int32_t stream, const uint8_t* data, size_t size, void* user) {
    Http2Connection& self = Self(user);
    if (stream == self.stream_) self.response_.data.append(reinterpret_cast<const char*>(data), size);
    return 0;
  }

  static int OnFrame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    Http2Connection& self = Self(user);
    const bool carries = frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS;
    const bool last = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    if (frame->hd.stream_id == self.stream_ && carries && last) self.response_.ended = true;
    return 0;
  }

  static int OnClose(nghttp2_session*, int32_t stream, uint32_t error, void* user) {
    Http2Connection& self = Self(user);
    if (stream != self.stream_) return 0;
    if (!self.response_.ended) self.response_.reset = error;
    self.response_.ended = true;
    self.stream_ = 0;
    return 0;
  }

  static ssize_t OnBodyWanted(nghttp2_session*, int32_t stream, uint8_t* to, size_t size, uint32_t* flags,
                              nghttp2_data_source*, void* user) {
    Http2Connection& self = Self(user);
    if (stream != self.stream_) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    return self.TakeBody(to, size, flags);
  }

  static nghttp2_session* MakeSession(Http2Connection& self) {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, OnHeader);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, OnData);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, OnFrame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, OnClose);
    nghttp2_session* session = nullptr;
    nghttp2_session_client_new(&session, callbacks, &self);
    nghttp2_session_callbacks_del(callbacks);
    return session;
  }
};

Http2Connection::Http2Connection(UniqueFd socket)
    : socket_(std::move(socket)), owner_(getpid()), session_(Callbacks::MakeSession(*this)) {
  const std::array<nghttp2_settings_entry, 2> settings = {
      nghttp2_settings_entry{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
      nghttp2_settings_entry{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kWindow}};
  nghttp2_submit_settings(session_.get(), NGHTTP2_FLAG_NONE, settings.data(), settings.size());
  nghttp2_session_set_local_window_size(session_.get(), NGHTTP2_FLAG_NONE, 0, kWindow);
}

Http2Connection::~Http2Connection() {
  if (owner_ == getpid()) shutdown(socket_.get(), SHUT_RDWR);
}

absl::Status Http2Connection::Begin(std::span<const Field> fields) {
  Cancel();
  response_ = {};
  body_.clear();
  taken_ = 0;
  last_ = false;
  std::vector<nghttp2_nv> headers;
  for (const auto& [name, value] : fields) {
    headers.push_back({Bytes(name), Bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE});
  }
  nghttp2_data_provider body{};
  body.read_callback = Callbacks::OnBodyWanted;
  stream_ = nghttp2_submit_request(session_.get(), nullptr, headers.data(), headers.size(), &body, nullptr);
  return stream_ > 0 ? absl::OkStatus() : Ended(nghttp2_strerror(stream_));
}

void Http2Connection::Queue(std::string_view data, bool last) {
  body_ += data;
  last_ = last;
  nghttp2_session_resume_data(session_.get(), stream_);
}

ssize_t Http2Connection::TakeBody(uint8_t* to, size_t size, uint32_t* flags) {
  const size_t count = std::min(size, body_.size() - taken_);
  if (count == 0 && !last_) return NGHTTP2_ERR_DEFERRED;
  memcpy(to, body_.data() + taken_, count);
  taken_ += count;
  if (taken_ == body_.size()) {
    body_.clear();
    taken_ = 0;
    if (last_) *flags |= NGHTTP2_DATA_FLAG_EOF;
  }
  return static_cast<ssize_t>(count);
}

void Http2Connection::Cancel() {
  if (stream_ <= 0) return;
  nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, stream_, NGHTTP2_CANCEL);
  stream_ = 0;
  body_.clear();
  static_cast<void>(Send());
}

absl::Status Http2Connection::Send() {
  if (owner_ != getpid()) return Ended("it belongs to the process that has forked this one");
  while (true) {
    while (unsent_.size() < kPiece) {
      const uint8_t* frame = nullptr;
      const ssize_t size = nghttp2_session_mem_send(session_.get(), &frame);
      if (size < 0) return Ended(nghttp2_strerror(static_cast<int>(size)));
      if (size == 0) break;
      unsent_.append(reinterpret_cast<const char*>(frame), static_cast<size_t>(size));
    }
    if (unsent_.empty()) return absl::OkStatus();
    const ssize_t sent = send(socket_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) return WouldBlock(errno) ? absl::OkStatus() : Ended(strerror(errno));
    unsent_.erase(0, static_cast<size_t>(sent));
  }
}

absl::Status Http2Connection::Receive(bool& received) {
  std::array<uint8_t, kPiece> bytes;
  const ssize_t size = recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (size < 0) return WouldBlock(errno) ? absl::OkStatus() : Ended(strerror(errno));
  if (size == 0) return Ended("the other end has closed it");
  const ssize_t used = nghttp2_session_mem_recv(session_.get(), bytes.data(), static_cast<size_t>(size));
  if (used < 0) return Ended(nghttp2_strerror(static_cast<int>(used)));
  received = true;
  return absl::OkStatus();
}

absl::Status Http2Connection::Exchange(std::chrono::milliseconds patience) {
  absl::Status sent = Send();
  bool received = false;
  // What the peer has said before it closed the connection is still to be read.
  KERNIX_RETURN_IF_ERROR(Receive(received));
  if (received) return Send();
  if (!sent.ok()) return sent;
  if (nghttp2_session_want_read(session_.get()) == 0) return Ended("the other end does not speak HTTP/2");
  const auto events = static_cast<short>(POLLIN | (unsent_.empty() ? 0 : POLLOUT));
  pollfd waiting{socket_.get(), events, 0};
  poll(&waiting, 1, static_cast<int>(patience.count()));
  return absl::OkStatus();
}

}  // namespace kernix
