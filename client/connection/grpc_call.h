// SPDX-License-Identifier: Apache-2.0
//
// Calls of the service Kernix, in gRPC's protocol over HTTP/2.
#pragma once

#include <google/protobuf/message_lite.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "client/connection/caller.h"
#include "client/connection/http2_connection.h"
#include "common/wire/call_status.h"

namespace kernix {

// One call. Only one at a time uses a connection. Keeps references to its arguments.
class GrpcCall {
 public:
  // `method`: "Load". `time_limit`: no limit if there is none.
  GrpcCall(Http2Connection& connection, std::string_view method, std::optional<std::chrono::milliseconds> time_limit,
           Caller& caller);
  ~GrpcCall();  // cancels it if it has not ended
  GrpcCall(const GrpcCall&) = delete;
  GrpcCall& operator=(const GrpcCall&) = delete;

  // Sends a message; `last`: no other follows. Returns false if the call has ended.
  bool Write(const google::protobuf::MessageLite& message, bool last);

  // Waits for the next message. Returns false if the call has ended.
  bool Read(google::protobuf::MessageLite& message);

  // Ends the call early. CANCELLED, unless it has ended before.
  void Cancel();

  // How it has ended. Call it when Read() or Write() has returned false, or after Cancel().
  const CallStatus& status() const { return *status_; }

 private:
  bool Ended() const { return status_.has_value(); }
  void End(absl::StatusCode code, std::string_view message);
  // Lets the connection work; waits if there is nothing to do.
  void Step();
  // The next message's bytes, without their prefix. Nullopt if they have not all arrived.
  std::optional<std::string> NextMessage();
  CallStatus StatusOfResponse();

  Http2Connection& connection_;
  Caller& caller_;
  const MonotonicTime deadline_;
  std::optional<CallStatus> status_;
};

// A call with one request and one response. `peer` is for messages.
absl::Status CallOnce(Http2Connection& connection, std::string_view peer, std::string_view method,
                      const google::protobuf::MessageLite& request, google::protobuf::MessageLite& response,
                      std::chrono::milliseconds time_limit, Caller& caller);

}  // namespace kernix
