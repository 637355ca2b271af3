// SPDX-License-Identifier: Apache-2.0
#include "client/connection/grpc_call.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "common/base/strings.h"
#include "common/base/version.h"

namespace kernix {
namespace {

using std::chrono::milliseconds;

// Before each message: whether it is compressed (never: we do not offer it), and its length, the highest byte first.
constexpr size_t kPrefixBytes = 5;

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

void GrpcCall::Cancel() {
  End(absl::StatusCode::kCancelled, "the client has ended the call");
  connection_.Cancel();
}

void GrpcCall::Step() {
  const auto left = std::chrono::ceil<milliseconds>(deadline_ - std::chrono::steady_clock::now());
  if (caller_.GaveUp()) return Cancel();
  if (left.count() <= 0) {
    End(absl::StatusCode::kDeadlineExceeded, "no answer came within the time limit");
    return connection_.Cancel();
  }
  const absl::Status status = connection_.Exchange(std::min(left, Caller::kInterval));
  // What has arrived with the end of the connection counts.
  if (!status.ok() && !connection_.response().ended) End(status.code(), ToStd(status.message()));
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
