// SPDX-License-Identifier: Apache-2.0
//
// HTTP/2 written by hand, by a client that keeps no rule but what it wants to keep.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "common/os/unique_fd.h"
#include "daemon/transport/local_user.h"

namespace kernix::security {

// --- Frames ----------------------------------------------------------------------------------------------------------
enum FrameType : uint8_t {
  kData = 0,
  kHeaders = 1,
  kPriority = 2,
  kReset = 3,
  kSettings = 4,
  kPing = 6,
  kGoAway = 7,
  kWindowUpdate = 8,
  kContinuation = 9,
  kUnknown = 200,
};

inline constexpr uint8_t kEndStream = 1;
inline constexpr uint8_t kEndHeaders = 4;

std::string Frame(FrameType type, uint8_t flags, uint32_t stream, std::string_view payload);

// The header block of a call of `method`, without the dynamic table.
std::string CallHeaders(std::string_view method);

// A header of HPACK that is not entered into the table, or is.
std::string Literal(std::string_view name, std::string_view value, bool indexed = false);

// --- Floods ----------------------------------------------------------------------------------------------------------

// What a client writes after the preface and its settings.
struct Flood {
  std::string what;
  // Once for each connection. May be empty.
  std::string first;
  // Again and again; `stream` is the next stream that the connection may open, and goes on from call to call.
  std::function<std::string(uint32_t& stream)> more;
  bool reads = true;        // what kernixd says
  size_t piece = SIZE_MAX;  // bytes of one write at most
};

// A thread that is `user` and floods through `connections` connections, and makes new ones for those that kernixd
// closes, until it is destroyed.
class Flooder {
 public:
  Flooder(uid_t user, const std::string& socket, Flood flood, int connections = 4);
  ~Flooder();
  Flooder(const Flooder&) = delete;
  Flooder& operator=(const Flooder&) = delete;

  uint64_t bytes() const { return bytes_; }    // written so far
  uint64_t closed() const { return closed_; }  // connections that kernixd has ended

 private:
  struct Connection {
    UniqueFd fd;
    std::string out;
    size_t at = 0;
    uint32_t stream = 1;
  };

  void Run(uid_t user, int connections);
  void Open(Connection& connection);
  bool Write(Connection& connection);
  bool Read(Connection& connection);

  const SocketAddress address_;
  const Flood flood_;
  std::atomic<bool> done_ = false;
  std::atomic<uint64_t> bytes_ = 0;
  std::atomic<uint64_t> closed_ = 0;
  std::thread thread_;
};

}  // namespace kernix::security
