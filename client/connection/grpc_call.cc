// SPDX-License-Identifier: Apache-2.0
#include "client/connection/grpc_call.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/version.h"

namespace kernix {

bool Caller::GaveUp() {
  if (gave_up_ || IsChild()) return true;
  if (!cancelled_ || std::chrono::steady_clock::now() < ask_at_) return false;
  gave_up_ = cancelled_();
  ask_at_ = std::chrono::steady_clock::now() + kInterval;
  return gave_up_ || IsChild();
}

bool Caller::Pause(std::chrono::milliseconds time) {
  const MonotonicTime end = std::chrono::steady_clock::now() + time;
  while (!GaveUp()) {
    const auto left = end - std::chrono::steady_clock::now();
    if (left.count() <= 0) return true;
    std::this_thread::sleep_for(std::min<MonotonicTime::duration>(left, kInterval));
  }
  return false;
}

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
  if (owner_ != getpid()) return Ended("it belongs to the parent process");
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
  has_heard_ = true;
  const ssize_t used = nghttp2_session_mem_recv(session_.get(), bytes.data(), static_cast<size_t>(size));
  if (used < 0) return Ended(nghttp2_strerror(static_cast<int>(used)));
  received = true;
  return absl::OkStatus();
}

absl::Status Http2Connection::Exchange(std::chrono::milliseconds patience) {
  absl::Status sent = Send();
  bool received = false;
  // Bytes that the peer sent before it closed the connection are still to be read.
  KERNIX_RETURN_IF_ERROR(Receive(received));
  if (received) return Send();
  if (!sent.ok()) return sent;
  if (nghttp2_session_want_read(session_.get()) == 0) return Ended("the other end does not speak HTTP/2");
  const auto events = static_cast<short>(POLLIN | (unsent_.empty() ? 0 : POLLOUT));
  pollfd waiting{socket_.get(), events, 0};
  poll(&waiting, 1, static_cast<int>(patience.count()));
  return absl::OkStatus();
}

namespace {

using std::chrono::milliseconds;

// Before each message: whether it is compressed (never: we do not offer it), and its length, the highest byte first.
constexpr size_t kPrefixBytes = 5;

// How long whom kernixd turns away stays away.
constexpr milliseconds kPause{400};

// The protocol allows eight digits.
constexpr milliseconds kLongestTimeout{99'999'999};

std::string Framed(const google::protobuf::MessageLite& message) {
  const size_t size = message.ByteSizeLong();
  std::string framed(1, '\0');
  framed.reserve(kPrefixBytes + size);
  for (int shift = 24; shift >= 0; shift -= 8) framed += static_cast<char>(size >> shift & 0xff);
  message.AppendToString(&framed);
  return framed;
}

size_t LengthIn(std::string_view prefix) {
  size_t length = 0;
  for (size_t i = 1; i < kPrefixBytes; ++i) length = length << 8 | static_cast<uint8_t>(prefix[i]);
  return length;
}

// gRPC's own table for calls that a server has broken off.
absl::StatusCode CodeOfReset(uint32_t error) {
  switch (error) {
    case NGHTTP2_REFUSED_STREAM:
      return absl::StatusCode::kUnavailable;
    case NGHTTP2_CANCEL:
      return absl::StatusCode::kCancelled;
    case NGHTTP2_ENHANCE_YOUR_CALM:
      return absl::StatusCode::kResourceExhausted;
    default:
      return absl::StatusCode::kInternal;
  }
}

int HexValue(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  const char lower = static_cast<char>(digit | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

std::string PercentDecoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escaped =
        text[i] == '%' && i + 2 < text.size() && HexValue(text[i + 1]) >= 0 && HexValue(text[i + 2]) >= 0;
    decoded += escaped ? static_cast<char>(HexValue(text[i + 1]) * 16 + HexValue(text[i + 2])) : text[i];
    if (escaped) i += 2;
  }
  return decoded;
}

const std::string* Find(const Http2Connection::Response& response, std::string_view name) {
  const auto found = response.fields.find(name);
  return found == response.fields.end() ? nullptr : &found->second;
}

MonotonicTime Deadline(std::optional<milliseconds> time_limit) {
  return time_limit ? std::chrono::steady_clock::now() + *time_limit : MonotonicTime::max();
}

}  // namespace

GrpcCall::GrpcCall(Http2Connection& connection, std::string_view method, std::optional<milliseconds> time_limit,
                   Caller& caller)
    : connection_(connection), caller_(caller), deadline_(Deadline(time_limit)) {
  const std::string path = StrCat("/kernix.v1.Kernix/", method);
  const std::string agent = StrCat("kernix/", Version());
  std::vector<Http2Connection::Field> fields = {
      {":method", "POST"},         {":scheme", "http"}, {":path", path},
      {":authority", "localhost"}, {"te", "trailers"},  {"content-type", "application/grpc"},
      {"user-agent", agent},
  };
  const std::string limit = time_limit ? StrCat(std::min(time_limit->count(), kLongestTimeout.count()), "m") : "";
  if (time_limit) fields.emplace_back("grpc-timeout", limit);
  const absl::Status begun = connection_.Begin(fields);
  if (!begun.ok()) End(begun.code(), ToStd(begun.message()));
}

GrpcCall::~GrpcCall() { connection_.Cancel(); }

void GrpcCall::End(absl::StatusCode code, std::string_view message) {
  if (!status_) status_ = CallStatus{code, std::string(message), ""};
}

void GrpcCall::EndBy(const absl::Status& error) {
  if (connection_.HasHeard()) return End(error.code(), ToStd(error.message()));
  v1::ErrorDetail busy = GetErrorDetail(MakeBusyError(
      "kernixd closes new connections at once: too many may be open (see max_connections_per_user)", Jittered(kPause)));
  busy.set_code(static_cast<int>(error.code()));
  if (!status_) status_ = ToCallStatus(MakeError(std::move(busy)));
}

void GrpcCall::Cancel() {
  End(absl::StatusCode::kCancelled, "the client has ended the call");
  connection_.Cancel();
}

void GrpcCall::Step() {
  const auto left = std::chrono::ceil<milliseconds>(deadline_ - std::chrono::steady_clock::now());
  if (caller_.GaveUp()) return Cancel();
  if (left.count() <= 0) {
    End(absl::StatusCode::kDeadlineExceeded,
        "no answer came within the time limit: it hangs, or the machine has too much to do. `kernixctl shutdown` stops "
        "it, or names the process to kill");
    return connection_.Cancel();
  }
  const absl::Status status = connection_.Exchange(std::min(left, Caller::kInterval));
  // Frames that arrived with the end of the connection are valid.
  if (!status.ok() && !connection_.response().ended) EndBy(status);
}

bool GrpcCall::Write(const google::protobuf::MessageLite& message, bool last) {
  if (Ended()) return false;
  connection_.Queue(Framed(message), last);
  const absl::Status sent = connection_.Send();
  while (sent.ok() && !connection_.AllSent() && !connection_.response().ended && !Ended()) Step();
  return !Ended() && !connection_.response().ended;
}

std::optional<std::string> GrpcCall::NextMessage() {
  std::string& data = connection_.response().data;
  if (data.size() < kPrefixBytes || data.size() - kPrefixBytes < LengthIn(data)) return std::nullopt;
  const size_t length = LengthIn(data);
  std::string message = data.substr(kPrefixBytes, length);
  if (data.size() == kPrefixBytes + length) {
    data.clear();
  } else {
    data.erase(0, kPrefixBytes + length);
  }
  return message;
}

bool GrpcCall::Read(google::protobuf::MessageLite& message) {
  while (!Ended()) {
    if (const std::optional<std::string> bytes = NextMessage()) {
      if (message.ParseFromString(*bytes)) return true;
      End(absl::StatusCode::kInternal, "the daemon's answer cannot be parsed");
      connection_.Cancel();
    } else if (connection_.response().ended) {
      status_ = StatusOfResponse();
    } else {
      Step();
    }
  }
  return false;
}

CallStatus GrpcCall::StatusOfResponse() {
  const Http2Connection::Response& response = connection_.response();
  CallStatus status;
  const std::string* const code = Find(response, "grpc-status");
  if (code == nullptr) {
    const std::string* const http = Find(response, ":status");
    status.code = response.reset == NGHTTP2_NO_ERROR ? absl::StatusCode::kUnknown : CodeOfReset(response.reset);
    status.message = StrCat("the call ended without a status (HTTP status ", http == nullptr ? "none" : *http,
                            ", HTTP/2 error ", response.reset, ")");
    return status;
  }
  int number = static_cast<int>(absl::StatusCode::kUnknown);
  std::from_chars(code->data(), code->data() + code->size(), number);
  status.code = static_cast<absl::StatusCode>(number);
  if (const std::string* message = Find(response, "grpc-message")) status.message = PercentDecoded(*message);
  if (const std::string* details = Find(response, "grpc-status-details-bin")) {
    absl::Base64Unescape(ToAbsl(*details), &status.details);
  }
  return status;
}

absl::Status CallOnce(Http2Connection& connection, std::string_view peer, std::string_view method,
                      const google::protobuf::MessageLite& request, google::protobuf::MessageLite& response,
                      milliseconds time_limit, Caller& caller) {
  GrpcCall call(connection, method, time_limit, caller);
  call.Write(request, /*last=*/true);
  const bool answered = call.Read(response);
  while (call.Read(response)) {
  }
  if (call.status().code == absl::StatusCode::kOk && !answered) {
    return absl::InternalError(StrCat(peer, " ended the call ", method, " without an answer"));
  }
  return FromCallStatus(call.status(), peer);
}

}  // namespace kernix
