// SPDX-License-Identifier: Apache-2.0
//
// The servers behind the socket: the lookup server, a gRPC server for each user that connects, since gRPC does not tell
// a service who calls, and one that answers refused connections.
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
#include "daemon/rpc/lookup_server.h"
#include "daemon/transport/accept_loop.h"
#include "daemon/transport/local_user.h"
#include "daemon/transport/relay.h"

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

// Decides who serves a connection: the lookup server, or its user's gRPC server. Thread-safe. A user's first connection
// is prepared in a thread of its own, so nobody else waits for it.
class PeerServers : public AcceptHandler {
 public:
  // The most servers of users without a connection that are kept. Beyond it, that which is idle for longest is dropped.
  static constexpr size_t kMaxIdle = 32;

  // The arguments must outlive it. gRPC gets connections through `relay`, unless that is null: a private daemon's user
  // can harm nobody else.
  PeerServers(Backend& backend, Callers& callers, LookupServer& lookups, Relay* relay);
  ~PeerServers() override;  // calls Shutdown() with no time to wait
  PeerServers(const PeerServers&) = delete;
  PeerServers& operator=(const PeerServers&) = delete;

  absl::Status Admit(const Peer& peer) override;

  // Closes a connection that comes after Shutdown(), or for which no server can be created.
  void Serve(UniqueFd connection, UserId user) override { Add(user, {std::move(connection), absl::OkStatus()}); }

  void NoteRefusal() override { backend_.metrics.NoteRefusal(Refusal::kConnections); }

  // Both end every call on `connection` with `reason`, but a private daemon has nothing to say to strangers.
  void Refuse(UniqueFd connection, UserId user, const absl::Status& reason) override {
    Add(user, {std::move(connection), reason});
  }
  void RefuseStranger(UniqueFd connection, const absl::Status& reason) override;

  void Left(UserId user) override;

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
  UniqueFd Route(UniqueFd connection, const IdentityPtr& user);
  void Deliver(User& user) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool InThread(std::function<void()> work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Prepare(UserId id);
  void CloseAll(UserId id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropIdle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Backend& backend_;
  Callers& callers_;
  LookupServer& lookups_;
  Relay* const relay_;
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
