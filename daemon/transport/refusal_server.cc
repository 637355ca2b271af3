// SPDX-License-Identifier: Apache-2.0
#include "daemon/transport/refusal_server.h"

#include <chrono>

#include "common/base/error.h"
#include "common/base/strings.h"
#include "common/wire/grpc_status.h"

namespace kernix::server {
namespace {

// One call. Deletes itself when gRPC is done with it.
class Refusal final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Refusal(const grpc::Status& reason) { Finish(reason); }
  void OnDone() override { delete this; }
};

}  // namespace

RefusalServer::RefusalServer() = default;

RefusalServer::~RefusalServer() {
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
}

void RefusalServer::Serve(UniqueFd connection, const absl::Status& reason) {
  service_.SetReason(reason);
  if (server_ == nullptr) Start();
  if (server_ == nullptr) return;
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
  parameters.fd = connection.release();
  acceptor_->HandleNewConnection(&parameters);
}

void RefusalServer::Start() {
  grpc::ServerBuilder builder;
  builder.RegisterCallbackGenericService(&service_);
  acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, grpc::InsecureServerCredentials());
  server_ = builder.BuildAndStart();
}

void RefusalServer::Service::SetReason(const absl::Status& reason) {
  const grpc::Status converted = ToGrpcStatus(MakeBusyError(ToStd(reason.message())));
  const MutexLock lock(mutex_);
  reason_ = converted;
}

grpc::ServerGenericBidiReactor* RefusalServer::Service::CreateReactor(grpc::GenericCallbackServerContext*) {
  const MutexLock lock(mutex_);
  return new Refusal(reason_);
}

}  // namespace kernix::server
