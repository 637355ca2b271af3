// SPDX-License-Identifier: Apache-2.0
//
// The client's end of an HTTP/2 connection: one socket, driven by the thread that waits for an answer.
#pragma once

#include <nghttp2/nghttp2.h>
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "common/os/unique_fd.h"

namespace kernix {

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
  Response response_;
};

}  // namespace kernix
