// SPDX-License-Identifier: Apache-2.0
//
// Calls of the service Kernix from the caller's thread: whether the caller still waits, the client's end of an HTTP/2
// connection, and gRPC's protocol over it.
#pragma once

#include <google/protobuf/message_lite.h>
#include <nghttp2/nghttp2.h>
#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "common/os/env.h"
#include "common/os/unique_fd.h"
#include "common/wire/call_status.h"

namespace kernix {

// The application's side of a call that may take long: whether it still waits. Of one call, in one thread. `cancelled`
// runs in that thread, and may throw and fork: a child gives up what its parent has begun.
class Caller {
 public:
  // How often the application is asked.
  static constexpr std::chrono::milliseconds kInterval{50};

  Caller() = default;  // waits until the call has ended
  explicit Caller(std::function<bool()> cancelled) : cancelled_(std::move(cancelled)) {}

  // Whether the call must end. Once true, always true. Call it at least every kInterval.
  bool GaveUp();

  // Whether this process is a child of the one that made the call, because a callback has forked.
  bool IsChild() const { return getpid() != process_; }

  // Waits. Returns false at once when the caller gives up.
  bool Pause(std::chrono::milliseconds time);

 private:
  std::function<bool()> cancelled_;
  pid_t process_ = getpid();
  MonotonicTime ask_at_ = std::chrono::steady_clock::now() + kInterval;
  bool gave_up_ = false;
};

// The client's end of an HTTP/2 connection: one socket, driven by the thread that waits for an answer.
//
// Carries requests one after the other. Not thread-safe; has no thread and no state outside of itself. After a fork()
// it remains the parent's: in a child it fails, and its destructor only closes the child's descriptor.
class Http2Connection {
 public:
  // `socket` does not block.
  explicit Http2Connection(UniqueFd socket);
  ~Http2Connection();  // the peer sees the end, even if a forked child still has the descriptor
  Http2Connection(const Http2Connection&) = delete;
  Http2Connection& operator=(const Http2Connection&) = delete;

  using Field = std::pair<std::string_view, std::string_view>;

  // What has arrived for the current request.
  struct Response {
    std::map<std::string, std::string, std::less<>> fields;  // headers and trailers
    std::string data;                                        // the reader removes what it has used
    bool ended = false;                                      // nothing follows
    uint32_t reset = NGHTTP2_NO_ERROR;                       // why the peer broke it off
  };

  // Begins a request, whose body follows. Drops the one before it.
  absl::Status Begin(std::span<const Field> fields);
  Response& response() { return response_; }

  // Whether the peer has said anything yet. A server greets whomever it lets in.
  bool HasHeard() const { return has_heard_; }

  // Queues a piece of the body. `last`: nothing follows.
  void Queue(std::string_view data, bool last);
  // Whether all pieces have been handed to the system.
  bool AllSent() const { return body_.empty() && unsent_.empty(); }

  // Breaks the request off, if either side has not ended it.
  void Cancel();

  // Sends and receives what is possible without waiting. If nothing has arrived, waits for that, or until more can be
  // sent, for `patience` at most. kUnavailable: the connection is at its end.
  absl::Status Exchange(std::chrono::milliseconds patience);
  // The first half of it.
  absl::Status Send();

 private:
  struct SessionDeleter {
    void operator()(nghttp2_session* session) const { nghttp2_session_del(session); }
  };
  struct Callbacks;

  absl::Status Receive(bool& received);
  // The next bytes of the body, for nghttp2: at most `size`.
  ssize_t TakeBody(uint8_t* to, size_t size, uint32_t* flags);

  const UniqueFd socket_;
  const pid_t owner_;
  std::unique_ptr<nghttp2_session, SessionDeleter> session_;
  std::string unsent_;  // frames
  int32_t stream_ = 0;  // of the current request; 0: none, or both sides have ended it
  std::string body_;    // not in frames yet
  size_t taken_ = 0;    // of `body_`
  bool last_ = false;
  bool has_heard_ = false;
  Response response_;
};

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
  // The connection is at its end.
  void EndBy(const absl::Status& error);
  // The next message's bytes, without their prefix. Nullopt if they have not all arrived.
  std::optional<std::string> NextMessage();
  CallStatus StatusOfResponse();

  Http2Connection& connection_;
  Caller& caller_;
  const MonotonicTime deadline_;
  std::optional<CallStatus> status_;
};

// A call with one request and one response. `peer` is for messages. If the connection ended before the peer had said
// anything, DaemonWasLost() of the status is true, and RetryAfter() above zero: a daemon that has too many connections
// turns new ones away.
absl::Status CallOnce(Http2Connection& connection, std::string_view peer, std::string_view method,
                      const google::protobuf::MessageLite& request, google::protobuf::MessageLite& response,
                      std::chrono::milliseconds time_limit, Caller& caller);

}  // namespace kernix
