// SPDX-License-Identifier: Apache-2.0
//
// The gRPC servers behind the socket: one for each user that connects, since gRPC does not tell a service who calls,
// and one that answers refused connections.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <map>
#include <memory>

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

// Thread-safe.
class PeerServers {
 public:
  // `backend` must outlive this object.
  explicit PeerServers(Backend& backend);
  ~PeerServers();  // calls Shutdown() with no time to wait
  PeerServers(const PeerServers&) = delete;
  PeerServers& operator=(const PeerServers&) = delete;

  // Serves `connection` as one of `user`'s. Closes a connection that comes after Shutdown(), or for which no server can
  // be created.
  void Serve(UniqueFd connection, const IdentityPtr& user);

  // Sets the answer of the health service.
  void SetServing(bool serving);

  // Ends all calls, cancelling those that are not over at `deadline`. Returns when none is left.
  void Shutdown(std::chrono::system_clock::time_point deadline);

 private:
  PeerServer* FindOrStart(const IdentityPtr& user) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Backend& backend_;
  Mutex mutex_;
  bool serving_ ABSL_GUARDED_BY(mutex_) = true;
  bool shut_down_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<UserId, std::unique_ptr<PeerServer>> servers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::server
