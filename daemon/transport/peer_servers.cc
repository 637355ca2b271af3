// SPDX-License-Identifier: Apache-2.0
#include "daemon/transport/peer_servers.h"

#include <grpc/support/time.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <sys/socket.h>

#include <algorithm>
#include <limits>
#include <system_error>
#include <thread>
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
  if (server_ != nullptr) server_->Shutdown(gpr_now(GPR_CLOCK_MONOTONIC));
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
  const bool is_busy = absl::IsResourceExhausted(reason);
  const grpc::Status converted = ToGrpcStatus(is_busy ? MakeBusyError(ToStd(reason.message())) : reason);
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

  // Must be called before the end, if ok().
  void Shutdown(gpr_timespec deadline) { server_->Shutdown(deadline); }

 private:
  KernixService service_;
  std::unique_ptr<ConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;  // destroyed before what it uses
};

PeerServers::PeerServers(Backend& backend, Callers& callers, LookupServer& lookups, Relay* relay)
    : backend_(backend), callers_(callers), lookups_(lookups), relay_(relay) {
  EnableStandardServices();
}

PeerServers::~PeerServers() { Shutdown(Duration{0}); }

absl::Status PeerServers::Admit(const Peer& peer) {
  absl::Status admitted = callers_.Admit(peer);
  if (!admitted.ok()) backend_.metrics.NoteRefusal(Refusal::kStranger);
  return admitted;
}

void PeerServers::Add(UserId id, Arrival arrival) {
  const MutexLock lock(mutex_);
  if (shut_down_) return;
  const auto [user, is_new] = users_.try_emplace(id);
  idle_.remove(id);
  if (!arrival.refusal.ok()) idle_.push_back(id);  // nobody will say when that one has left
  user->second.arrived.push_back(std::move(arrival));
  if (user->second.server != nullptr) return Deliver(user->second);
  if (!is_new || InThread([this, id] { Prepare(id); })) return;
  users_.erase(user);
  idle_.remove(id);
}

// Returns the connection as gRPC gets it: none if it is a lookup's.
UniqueFd PeerServers::Route(UniqueFd connection, const IdentityPtr& user) {
  if (BeginsLookup(connection.get())) {
    lookups_.Serve(std::move(connection), user);
    return UniqueFd();
  }
  if (relay_ == nullptr) return connection;
  absl::StatusOr<UniqueFd> end = relay_->Connect(std::move(connection), user);
  if (end.ok()) return *std::move(end);
  Log(LogLevel::kWarning, "connection_dropped", {{"user", user->name()}, {"error", end.status().message()}});
  return UniqueFd();
}

// Connections for gRPC stay if there is no server yet.
void PeerServers::Deliver(User& user) {
  for (Arrival& arrival : std::exchange(user.arrived, {})) {
    if (!std::exchange(arrival.is_routed, true)) {
      arrival.connection = Route(std::move(arrival.connection), user.identity);
    }
    if (!arrival.connection.ok()) continue;
    if (!arrival.refusal.ok()) {
      refusals_.Serve(std::move(arrival.connection), arrival.refusal);
    } else if (user.server != nullptr) {
      user.server->Serve(std::move(arrival.connection));
    } else {
      user.arrived.push_back(std::move(arrival));
    }
  }
}

// False if the system has no thread left.
bool PeerServers::InThread(std::function<void()> work) {
  try {
    std::thread([this, work = std::move(work)] {
      work();
      const MutexLock lock(mutex_);
      --threads_;
      thread_ended_.NotifyAll();
    }).detach();
  } catch (const std::system_error& error) {
    Log(LogLevel::kError, "server_failed", {{"error", error.what()}});
    return false;
  }
  ++threads_;
  return true;
}

// The accept loop has the connections, too, and sees that they are shut down.
void PeerServers::CloseAll(UserId id) {
  const auto user = users_.find(id);
  for (const Arrival& arrival : user->second.arrived) shutdown(arrival.connection.get(), SHUT_RDWR);
  users_.erase(user);
  idle_.remove(id);
}

// Lookups need no server, so they do not wait for it.
void PeerServers::Prepare(UserId id) {
  IdentityPtr identity = callers_.Identify(id);
  {
    const MutexLock lock(mutex_);
    if (identity == nullptr) return CloseAll(id);
    User& user = users_.at(id);
    user.identity = identity;
    Deliver(user);
  }
  auto server = std::make_unique<PeerServer>(backend_, identity);
  const MutexLock lock(mutex_);
  if (!server->ok()) {
    Log(LogLevel::kError, "server_failed", {{"user", identity->name()}});
    users_.erase(id);
    idle_.remove(id);
    return;
  }
  User& user = users_.at(id);
  user.server = std::move(server);
  user.server->SetServing(serving_);
  Deliver(user);
  DropIdle();
}

void PeerServers::RefuseStranger(UniqueFd connection, const absl::Status& reason) {
  if (relay_ == nullptr) {
    shutdown(connection.get(), SHUT_RDWR);  // the accept loop has it, too
    return;
  }
  const MutexLock lock(mutex_);
  if (!shut_down_) strangers_.Serve(std::move(connection), reason);
}

void PeerServers::Left(UserId user) {
  const MutexLock lock(mutex_);
  if (!users_.contains(user)) return;
  idle_.remove(user);  // a connection that closes before it is served makes a user leave twice
  idle_.push_back(user);
  DropIdle();
}

void PeerServers::DropIdle() {
  if (idle_.size() <= kMaxIdle) return;
  const auto oldest = std::find_if(idle_.begin(), idle_.end(), [this](UserId id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return users_.at(id).server != nullptr;
  });
  if (oldest == idle_.end()) return;
  std::shared_ptr<PeerServer> server = std::move(users_.at(*oldest).server);
  users_.erase(*oldest);
  idle_.erase(oldest);
  // It may wait for calls that do not know yet that their client has gone.
  InThread([server = std::move(server)]() mutable {
    server->Shutdown(gpr_now(GPR_CLOCK_MONOTONIC));
    server.reset();
  });
}

void PeerServers::SetServing(bool serving) {
  const MutexLock lock(mutex_);
  serving_ = serving;
  for (const auto& [id, user] : users_) {
    if (user.server != nullptr) user.server->SetServing(serving);
  }
}

void PeerServers::Shutdown(Duration patience) {
  const gpr_timespec deadline =
      gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(patience.count(), GPR_TIMESPAN));
  const MutexLock lock(mutex_);
  shut_down_ = true;
  while (threads_ > 0) thread_ended_.Wait(mutex_);
  for (const auto& [id, user] : users_) user.server->Shutdown(deadline);
  users_.clear();
}

size_t PeerServers::size() const {
  const MutexLock lock(mutex_);
  return users_.size();
}

}  // namespace kernix::server
