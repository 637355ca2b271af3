// SPDX-License-Identifier: Apache-2.0
#include "daemon/transport/peer_servers.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>

#include <chrono>
#include <limits>
#include <utility>

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/base/strings.h"
#include "common/wire/grpc_status.h"
#include "daemon/rpc/kernix_service.h"

namespace kernix::server {
namespace {

// One call. Deletes itself when gRPC is done with it.
class RefusedCall final : public grpc::ServerGenericBidiReactor {
 public:
  explicit RefusedCall(const grpc::Status& reason) { Finish(reason); }
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
  return new RefusedCall(reason_);
}

namespace {

using ConnectionAcceptor = grpc::experimental::ExternalConnectionAcceptor;

// More than a request may have, so that most requests that are too large get our own error message (see LoadCall)
// instead of gRPC's. The settings keep it within an int.
int GrpcMessageLimit(const ServiceOptions& options) {
  constexpr uint64_t kEnvelope = 1 << 20;
  return static_cast<int>(2 * options.max_request_bytes + kEnvelope);
}

// Loads need no thread here (see LoadGate), but a fetch holds one as long as its client reads. The rest is for the
// calls of kernixctl and other clients.
int ThreadLimit(const ServiceOptions& options) {
  constexpr int kOthers = 256;
  constexpr int kNone = std::numeric_limits<int>::max();
  return options.max_fetches_per_user == 0 || options.max_fetches_per_user > kNone - kOthers
             ? kNone
             : options.max_fetches_per_user + kOthers;
}

// Limits the memory and threads of one user's calls together. Beyond the limits, gRPC ends calls of this user with
// RESOURCE_EXHAUSTED; other users' calls are not affected.
void LimitResources(const ServiceOptions& options, grpc::ServerBuilder& builder) {
  constexpr size_t kBase = 256 << 20;  // for the connections of hundreds of processes
  constexpr size_t kMessages = 2;      // messages of the largest size being received
  grpc::ResourceQuota quota("kernixd user");
  quota.Resize(kBase + kMessages * static_cast<size_t>(GrpcMessageLimit(options)));
  quota.SetMaxThreads(ThreadLimit(options));
  builder.SetResourceQuota(quota);
}

// By default, gRPC keeps a queue for each processor, with a thread or two that wait at it. Calls that come get threads
// of their own all the same.
void LimitIdleThreads(grpc::ServerBuilder& builder) {
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::MIN_POLLERS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::MAX_POLLERS, 1);
}

// Both are process-wide and affect every server that is built later.
void EnableStandardServices() {
  [[maybe_unused]] static const bool once = [] {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    return true;
  }();
}

}  // namespace

// The server of one user.
class PeerServer {
 public:
  PeerServer(Backend& backend, IdentityPtr user) : service_(backend, std::move(user)) {
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(GrpcMessageLimit(backend.options));
    builder.SetMaxSendMessageSize(-1);
    LimitResources(backend.options, builder);
    LimitIdleThreads(builder);
    builder.RegisterService(&service_);
    acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, grpc::InsecureServerCredentials());
    server_ = builder.BuildAndStart();
  }

  bool ok() const { return server_ != nullptr; }

  void Serve(UniqueFd connection) {
    ConnectionAcceptor::NewConnectionParameters parameters;
    parameters.fd = connection.release();
    acceptor_->HandleNewConnection(&parameters);
  }

  void SetServing(bool serving) {
    server_->GetHealthCheckService()->SetServingStatus(serving);
    server_->GetHealthCheckService()->SetServingStatus(v1::Kernix::service_full_name(), serving);
  }

  void Shutdown(std::chrono::system_clock::time_point deadline) { server_->Shutdown(deadline); }

 private:
  KernixService service_;
  std::unique_ptr<ConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;  // destroyed before what it uses
};

PeerServers::PeerServers(Backend& backend) : backend_(backend) { EnableStandardServices(); }

PeerServers::~PeerServers() { Shutdown(std::chrono::system_clock::now()); }

void PeerServers::Serve(UniqueFd connection, const IdentityPtr& user) {
  const MutexLock lock(mutex_);
  if (shut_down_) return;
  PeerServer* server = FindOrStart(user);
  if (server == nullptr) return;
  server->Serve(std::move(connection));
}

PeerServer* PeerServers::FindOrStart(const IdentityPtr& user) {
  const auto found = servers_.find(user->id());
  if (found != servers_.end()) return found->second.get();
  auto server = std::make_unique<PeerServer>(backend_, user);
  if (!server->ok()) {
    Log(LogLevel::kError, "server_failed", {{"user", user->name()}});
    return nullptr;
  }
  server->SetServing(serving_);
  return servers_.emplace(user->id(), std::move(server)).first->second.get();
}

void PeerServers::SetServing(bool serving) {
  const MutexLock lock(mutex_);
  serving_ = serving;
  for (const auto& [id, server] : servers_) server->SetServing(serving);
}

void PeerServers::Shutdown(std::chrono::system_clock::time_point deadline) {
  const MutexLock lock(mutex_);
  shut_down_ = true;
  for (const auto& [id, server] : servers_) server->Shutdown(deadline);
  servers_.clear();
}

}  // namespace kernix::server
