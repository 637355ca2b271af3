// SPDX-License-Identifier: Apache-2.0
//
// Stands between the members of a shared daemon and gRPC: passes on what both say, and does not listen to a user who
// asks more of gRPC than TrafficMeter allows, until that has been worked off. Other users do not notice. A connection
// with calls or headers beyond all measure is closed.
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
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/identity.h"
#include "common/base/mutex.h"
#include "common/os/env.h"
#include "common/os/unique_fd.h"
#include "daemon/transport/traffic_meter.h"

namespace kernix::server {

// Thread-safe. One thread serves all connections. It keeps at most kPiece bytes of a connection, each way, and none of
// one that is read as fast as it is written.
class Relay {
 public:
  // Descriptors of the relay for each connection, beside the client's.
  static constexpr int kDescriptors = 2;

  static absl::StatusOr<std::unique_ptr<Relay>> Start();
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

  Relay(UniqueFd epoll, UniqueFd wake) : epoll_(std::move(epoll)), wake_(std::move(wake)) {}

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
