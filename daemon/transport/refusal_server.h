// SPDX-License-Identifier: Apache-2.0
//
// Serves refused connections: answers every call with the reason. A client whose connection is simply closed would take
// the daemon for dead.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <memory>

#include "absl/status/status.h"
#include "common/base/mutex.h"
#include "common/os/unique_fd.h"

namespace kernix::server {

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

}  // namespace kernix::server
