// SPDX-License-Identifier: Apache-2.0
//
// Stands between the members of a shared daemon and gRPC: forwards bytes in both directions, and does not read from a
// user who causes more work for gRPC than TrafficMeter allows, until gRPC has caught up. Other users do not notice. A
// connection with calls or headers beyond all measure is closed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/identity.h"
#include "common/base/mutex.h"
#include "common/os/env.h"
#include "common/os/unique_fd.h"

namespace kernix::server {

// Finds the heads of HTTP/2 frames in what one end of a connection sends, in pieces of any size.
enum class FrameType : uint8_t { kData = 0, kHeaders = 1, kReset = 3, kPing = 6, kContinuation = 9 };

struct FrameHead {
  uint32_t length = 0;  // of the payload, in bytes
  FrameType type{};     // may be none of the above
  uint8_t flags = 0;
  uint32_t stream = 0;

  bool ends_stream() const;                               // DATA or HEADERS, as the last of its sender
  bool acknowledges() const { return (flags & 1) != 0; }  // of a PING
};

// Not thread-safe. Bytes that are no HTTP/2 make nonsense of heads, and no harm.
class FrameReader {
 public:
  // The first `preface` bytes are no frames.
  explicit FrameReader(uint32_t preface) : skip_(preface) {}

  // Calls `seen` for each head that is complete with `bytes`, before its payload is.
  void Read(std::string_view bytes, absl::FunctionRef<void(const FrameHead&)> seen);

 private:
  static constexpr size_t kHeadBytes = 9;

  void Skip(std::string_view& bytes);
  void Collect(std::string_view& bytes);
  FrameHead Head() const;

  uint32_t skip_;  // bytes until the next head
  std::array<uint8_t, kHeadBytes> head_{};
  size_t collected_ = 0;  // bytes of `head_`
};

// The cost of a user's connections for gRPC, which has no limit of its own for work that takes a client a few bytes: it
// queues calls that were reset, and answers whatever asks for an answer.

// All connections of one user. The unit of cost is a frame. Not thread-safe.
class UserTraffic {
 public:
  // Most frames cost gRPC next to nothing, and clients at full speed send tens of thousands a second.
  static constexpr double kPerSecond = 400'000;
  // A call that ends before kernixd has ended it: gRPC goes on with it for a while, and nothing tells how long. A new
  // connection costs as much.
  static constexpr double kAbandonedCall = kPerSecond / 500;
  // gRPC takes many of them for abuse, and keeps what it has to say about that.
  static constexpr double kPing = kPerSecond / 4000;
  static constexpr double kHeaderByte = 0.25;
  // More than max_loads_per_user and max_fetches_per_user together let a user have.
  static constexpr int kMaxCalls = 2000;

  explicit UserTraffic(MonotonicTime now) : filled_at_(now) {}

  void Spend(double cost) { left_ -= cost; }
  // How long the user must wait until more may be spent; 0: not at all.
  Duration Wait(MonotonicTime now);

  int calls = 0;  // under way

 private:
  double left_ = kPerSecond;  // at most what comes in a second
  MonotonicTime filled_at_;
};

// One connection. Not thread-safe.
class TrafficMeter {
 public:
  // gRPC takes 8 KiB of headers for a call.
  static constexpr uint32_t kMaxHeaderBytes = 32 << 10;

  explicit TrafficMeter(UserTraffic& user);
  ~TrafficMeter();  // abandons the calls that are under way
  TrafficMeter(const TrafficMeter&) = delete;
  TrafficMeter& operator=(const TrafficMeter&) = delete;

  // kResourceExhausted if the connection has to be closed.
  absl::Status FromClient(std::string_view bytes);
  void FromServer(std::string_view bytes);

 private:
  void Count(const FrameHead& head);
  void AddHeaders(uint32_t bytes);
  void Open(uint32_t stream);
  void Abandon(uint32_t stream);
  void End(uint32_t stream);

  UserTraffic& user_;
  FrameReader client_;
  FrameReader server_;
  std::set<uint32_t> calls_;  // streams that kernixd has not ended
  uint32_t last_stream_ = 0;
  uint64_t header_bytes_ = 0;  // of the call whose headers came last
};

// Thread-safe. One thread serves all connections. It keeps at most kPiece bytes of a connection, each way, and none of
// one that is read as fast as it is written.
class Relay {
 public:
  // Descriptors of the relay for each connection, beside the client's.
  static constexpr int kDescriptors = 2;

  // `env`, the clock, must outlive it.
  static absl::StatusOr<std::unique_ptr<Relay>> Start(Env& env);
  ~Relay();  // calls Stop() with no time left
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  // Takes over `client`, a connection of `user`'s, and returns what gRPC gets in its place. When one of both closes, or
  // the client only stops sending, the other one is closed.
  absl::StatusOr<UniqueFd> Connect(UniqueFd client, const IdentityPtr& user);

  // Closes all connections at `deadline`, and those that come later at once. Does not wait.
  void Stop(MonotonicTime deadline);

 private:
  static constexpr size_t kPiece = 16 << 10;

  struct Connection;
  // One of the two sockets of a connection.
  struct End {
    Connection* connection = nullptr;
    UniqueFd fd;
    uint32_t events = 0;  // of epoll, that are waited for
    std::string unsent;   // to this end
  };
  struct User {
    explicit User(MonotonicTime now) : traffic(now) {}
    UserTraffic traffic;
    MonotonicTime next_word;  // when the log may have the next line about this user
    std::set<Connection*> connections;
  };
  struct Connection {
    Connection(UniqueFd client_fd, UniqueFd server_fd, IdentityPtr who);
    End client;
    End server;
    const IdentityPtr identity;
    User* user = nullptr;
    std::unique_ptr<TrafficMeter> meter;
    bool closed = false;
  };

  Relay(Env& env, UniqueFd epoll, UniqueFd wake) : env_(env), epoll_(std::move(epoll)), wake_(std::move(wake)) {}

  void Run();
  bool GoesOn();
  int Timeout();
  void TakeArrivals();
  void Add(std::unique_ptr<Connection> connection);
  void Handle(End& end, uint32_t events);
  bool Send(End& end);
  bool MayBeHeard(Connection& connection);
  bool ReadClient(Connection& connection);
  bool ReadServer(Connection& connection);
  void HearAgain();
  void Listen(Connection& connection);
  void Listen(End& end, uint32_t events);
  void Close(Connection& connection);
  void Note(Connection& connection, std::string_view reason);
  void Forget();

  Env& env_;
  const UniqueFd epoll_;
  const UniqueFd wake_;  // an eventfd

  Mutex mutex_;
  MonotonicTime deadline_ ABSL_GUARDED_BY(mutex_) = MonotonicTime::max();
  std::vector<std::unique_ptr<Connection>> arrived_ ABSL_GUARDED_BY(mutex_);

  // Only the thread uses these.
  std::map<UserId, User> users_;
  std::map<Connection*, std::unique_ptr<Connection>> connections_;
  std::vector<Connection*> closed_;  // their events may not all have been handled
  std::set<User*> waiting_;          // may not be heard now
  std::array<char, kPiece> piece_;

  std::thread thread_;
};

}  // namespace kernix::server
