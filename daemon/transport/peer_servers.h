// SPDX-License-Identifier: Apache-2.0
//
// The gRPC servers behind the socket: one for each user that connects, since gRPC does not tell a service who calls,
// and one that answers refused connections.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/base/identity.h"
#include "common/base/mutex.h"
#include "common/os/env.h"
#include "common/os/unique_fd.h"
#include "daemon/rpc/backend.h"

namespace kernix::server {

// Serves refused connections: answers every call with the reason. A client whose connection is simply closed would take
// the daemon for dead.

// Not thread-safe.
class RefusalServer {
 public:
  RefusalServer();
  ~RefusalServer();  // cancels calls under way
  RefusalServer(const RefusalServer&) = delete;
  RefusalServer& operator=(const RefusalServer&) = delete;

  // Ends every call on `connection` with `reason`, or with the reason of a later connection. The first call of Serve()
  // starts a gRPC server.
  void Serve(UniqueFd connection, const absl::Status& reason);

 private:
  class Service : public grpc::CallbackGenericService {
   public:
    void SetReason(const absl::Status& reason);
    grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override;

   private:
    Mutex mutex_;
    grpc::Status reason_ ABSL_GUARDED_BY(mutex_);
  };

  void Start();

  Service service_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;  // destroyed before what it uses
};

class PeerServer;

// Thread-safe. A user's first connection is prepared in a thread of its own, so nobody else waits for it.
class PeerServers {
 public:
  struct Handler {
    // Who a user is; null: nobody, whose connections are closed. May take long: the user database may be another
    // machine's.
    std::function<IdentityPtr(UserId user)> identify;
    // Takes over a connection of a user whose identity is known, or returns what gRPC gets in its place.
    std::function<UniqueFd(UniqueFd connection, const IdentityPtr& user)> route;
  };

  // The most servers of users without a connection that are kept. Beyond it, that which is idle for longest is dropped.
  static constexpr size_t kMaxIdle = 32;

  // `backend`, and all objects that `handler` uses, must outlive this object.
  PeerServers(Backend& backend, Handler handler);
  ~PeerServers();  // calls Shutdown() with no time to wait
  PeerServers(const PeerServers&) = delete;
  PeerServers& operator=(const PeerServers&) = delete;

  // Serves `connection` as one of `user`'s. Closes a connection that comes after Shutdown(), or for which no server can
  // be created.
  void Serve(UniqueFd connection, UserId user) { Add(user, {std::move(connection), absl::OkStatus()}); }

  // Ends every call on `connection` with `reason`.
  void Refuse(UniqueFd connection, UserId user, const absl::Status& reason) {
    Add(user, {std::move(connection), reason});
  }

  // The same for somebody who is no user.
  void RefuseStranger(UniqueFd connection, const absl::Status& reason);

  // The last connection of `user` has closed.
  void Left(UserId user);

  // Sets the answer of the health service.
  void SetServing(bool serving);

  // Ends all calls, cancelling those that are not over after `patience`. Returns when none is left.
  void Shutdown(Duration patience);

  // The number of users who have a server.
  size_t size() const;

 private:
  struct Arrival {
    UniqueFd connection;
    absl::Status refusal;  // OK: it is to be served
    bool is_routed = false;
  };
  struct User {
    IdentityPtr identity;
    std::unique_ptr<PeerServer> server;
    std::vector<Arrival> arrived;  // wait for the server
  };

  void Add(UserId id, Arrival arrival);
  void Deliver(User& user) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool InThread(std::function<void()> work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Prepare(UserId id);
  void CloseAll(UserId id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropIdle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Backend& backend_;
  const Handler handler_;
  mutable Mutex mutex_;
  CondVar thread_ended_;
  int threads_ ABSL_GUARDED_BY(mutex_) = 0;
  bool serving_ ABSL_GUARDED_BY(mutex_) = true;
  bool shut_down_ ABSL_GUARDED_BY(mutex_) = false;
  RefusalServer refusals_ ABSL_GUARDED_BY(mutex_);
  RefusalServer strangers_ ABSL_GUARDED_BY(mutex_);  // whom another reason is told
  std::map<UserId, User> users_ ABSL_GUARDED_BY(mutex_);
  std::list<UserId> idle_ ABSL_GUARDED_BY(mutex_);  // users without a connection, who left first in front
};

}  // namespace kernix::server
