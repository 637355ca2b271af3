// SPDX-License-Identifier: Apache-2.0
#include "tests/support/engine/fault_proxy.h"

#include <gtest/gtest.h>

#include <type_traits>
#include <utility>

#include "build/bazel/remote/execution/v2/remote_execution.grpc.pb.h"
#include "common/base/strings.h"
#include "google/bytestream/bytestream.grpc.pb.h"
#include "google/longrunning/operations.grpc.pb.h"
#include "tests/support/await.h"

namespace kernix::testing {
namespace {

namespace reapi = build::bazel::remote::execution::v2;
namespace bytestream = google::bytestream;
namespace longrunning = google::longrunning;

// The call of the engine: it ends when the client's call does, and carries the same token.
std::unique_ptr<grpc::ClientContext> Forwarded(const grpc::ServerContext& context) {
  auto forwarded = grpc::ClientContext::FromServerContext(context);
  for (const auto& [name, value] : context.client_metadata()) {
    if (name == "authorization") forwarded->AddMetadata("authorization", std::string(value.data(), value.size()));
  }
  return forwarded;
}

grpc::Status Cut() { return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the connection was cut"); }

longrunning::Operation WaitsForAWorker() {
  reapi::ExecuteOperationMetadata metadata;
  metadata.set_stage(reapi::ExecutionStage::QUEUED);
  longrunning::Operation operation;
  operation.set_name("an action without a worker");
  operation.mutable_metadata()->PackFrom(metadata);
  return operation;
}

// What a fault does to one call.
class Spoiler {
 public:
  Spoiler(std::optional<EngineFault> fault, grpc::ServerContext& context) : fault_(std::move(fault)) {
    if (fault_ && fault_->hang) {
      Await("the client to give up", [&context] { return context.IsCancelled(); });
      fault_->answer = grpc::Status::CANCELLED;
    }
  }

  // Instead of asking the engine.
  std::optional<grpc::Status> answer() const { return fault_ ? fault_->answer : std::nullopt; }

  void Change(google::protobuf::Message& message) const {
    if (fault_ && fault_->change) fault_->change(message);
  }

  bool queues() const { return fault_ && fault_->queue; }

  bool CutsAfter(int messages) const { return fault_ && fault_->cut_after >= 0 && messages >= fault_->cut_after; }

 private:
  std::optional<EngineFault> fault_;
};

}  // namespace

class FaultProxy::Services : public reapi::Execution::Service,
                             public reapi::ActionCache::Service,
                             public reapi::ContentAddressableStorage::Service,
                             public reapi::Capabilities::Service,
                             public bytestream::ByteStream::Service,
                             public longrunning::Operations::Service {
 public:
  Services(FaultProxy& proxy, const std::shared_ptr<grpc::Channel>& engine)
      : proxy_(proxy),
        execution_(engine),
        action_cache_(engine),
        storage_(engine),
        capabilities_(engine),
        streams_(engine),
        operations_(engine) {}

  void AddTo(grpc::ServerBuilder& builder) {
    builder.RegisterService(static_cast<reapi::Execution::Service*>(this));
    builder.RegisterService(static_cast<reapi::ActionCache::Service*>(this));
    builder.RegisterService(static_cast<reapi::ContentAddressableStorage::Service*>(this));
    builder.RegisterService(static_cast<reapi::Capabilities::Service*>(this));
    builder.RegisterService(static_cast<bytestream::ByteStream::Service*>(this));
    builder.RegisterService(static_cast<longrunning::Operations::Service*>(this));
  }

  grpc::Status GetActionResult(grpc::ServerContext* context, const reapi::GetActionResultRequest* request,
                               reapi::ActionResult* response) override {
    return Unary("GetActionResult", *context, *response,
                 [&](auto* call) { return action_cache_.GetActionResult(call, *request, response); });
  }
  grpc::Status UpdateActionResult(grpc::ServerContext* context, const reapi::UpdateActionResultRequest* request,
                                  reapi::ActionResult* response) override {
    return Unary("UpdateActionResult", *context, *response,
                 [&](auto* call) { return action_cache_.UpdateActionResult(call, *request, response); });
  }
  grpc::Status FindMissingBlobs(grpc::ServerContext* context, const reapi::FindMissingBlobsRequest* request,
                                reapi::FindMissingBlobsResponse* response) override {
    return Unary("FindMissingBlobs", *context, *response,
                 [&](auto* call) { return storage_.FindMissingBlobs(call, *request, response); });
  }
  grpc::Status BatchUpdateBlobs(grpc::ServerContext* context, const reapi::BatchUpdateBlobsRequest* request,
                                reapi::BatchUpdateBlobsResponse* response) override {
    return Unary("BatchUpdateBlobs", *context, *response,
                 [&](auto* call) { return storage_.BatchUpdateBlobs(call, *request, response); });
  }
  grpc::Status BatchReadBlobs(grpc::ServerContext* context, const reapi::BatchReadBlobsRequest* request,
                              reapi::BatchReadBlobsResponse* response) override {
    return Unary("BatchReadBlobs", *context, *response,
                 [&](auto* call) { return storage_.BatchReadBlobs(call, *request, response); });
  }
  grpc::Status CancelOperation(grpc::ServerContext* context, const longrunning::CancelOperationRequest* request,
                               google::protobuf::Empty* response) override {
    return Unary("CancelOperation", *context, *response,
                 [&](auto* call) { return operations_.CancelOperation(call, *request, response); });
  }
  grpc::Status GetCapabilities(grpc::ServerContext* context, const reapi::GetCapabilitiesRequest* request,
                               reapi::ServerCapabilities* response) override {
    return Unary("GetCapabilities", *context, *response,
                 [&](auto* call) { return capabilities_.GetCapabilities(call, *request, response); });
  }

  grpc::Status Read(grpc::ServerContext* context, const bytestream::ReadRequest* request,
                    grpc::ServerWriter<bytestream::ReadResponse>* writer) override {
    return Stream("Read", *context, *writer, [&](auto* call) { return streams_.Read(call, *request); });
  }
  grpc::Status Execute(grpc::ServerContext* context, const reapi::ExecuteRequest* request,
                       grpc::ServerWriter<longrunning::Operation>* writer) override {
    if (request->skip_cache_lookup()) proxy_.SkipsTheCache();
    return Stream("Execute", *context, *writer, [&](auto* call) { return execution_.Execute(call, *request); });
  }
  grpc::Status WaitExecution(grpc::ServerContext* context, const reapi::WaitExecutionRequest* request,
                             grpc::ServerWriter<longrunning::Operation>* writer) override {
    return Stream("WaitExecution", *context, *writer,
                  [&](auto* call) { return execution_.WaitExecution(call, *request); });
  }

  grpc::Status Write(grpc::ServerContext* context, grpc::ServerReader<bytestream::WriteRequest>* reader,
                     bytestream::WriteResponse* response) override {
    const Spoiler spoiler(proxy_.Arrived("Write", *context), *context);
    if (spoiler.answer()) return *spoiler.answer();
    const auto call = Forwarded(*context);
    const auto writer = streams_.Write(call.get(), response);
    const grpc::Status cut = ForwardWrites(spoiler, *reader, *writer);
    if (!cut.ok()) {
      call->TryCancel();
      writer->Finish().IgnoreError();
      return cut;
    }
    writer->WritesDone();
    grpc::Status status = writer->Finish();
    spoiler.Change(*response);
    return status;
  }

 private:
  template <typename Call>
  grpc::Status Unary(const char* method, grpc::ServerContext& context, google::protobuf::Message& response,
                     const Call& call_engine) {
    const Spoiler spoiler(proxy_.Arrived(method, context), context);
    if (spoiler.answer()) return *spoiler.answer();
    const auto call = Forwarded(context);
    const grpc::Status status = call_engine(call.get());
    spoiler.Change(response);
    return status;
  }

  template <typename Message, typename Call>
  grpc::Status Stream(const char* method, grpc::ServerContext& context, grpc::ServerWriter<Message>& writer,
                      const Call& call_engine) {
    const Spoiler spoiler(proxy_.Arrived(method, context), context);
    if (spoiler.answer()) return *spoiler.answer();
    if constexpr (std::is_same_v<Message, longrunning::Operation>) {
      if (spoiler.queues() && writer.Write(WaitsForAWorker())) {
        Await("the client to give up", [&context] { return context.IsCancelled(); });
        return grpc::Status::CANCELLED;
      }
    }
    const auto call = Forwarded(context);
    const auto reader = call_engine(call.get());
    Message message;
    for (int messages = 0; !spoiler.CutsAfter(messages) && reader->Read(&message); ++messages) {
      spoiler.Change(message);
      if (!writer.Write(message)) break;
      if (spoiler.CutsAfter(messages + 1)) {
        call->TryCancel();
        reader->Finish().IgnoreError();
        return Cut();
      }
    }
    if (spoiler.CutsAfter(0)) call->TryCancel();
    grpc::Status status = reader->Finish();
    return spoiler.CutsAfter(0) ? Cut() : status;
  }

  grpc::Status ForwardWrites(const Spoiler& spoiler, grpc::ServerReader<bytestream::WriteRequest>& reader,
                             grpc::ClientWriter<bytestream::WriteRequest>& writer) {
    bytestream::WriteRequest request;
    for (int messages = 0; reader.Read(&request); ++messages) {
      if (spoiler.CutsAfter(messages)) return Cut();
      if (!writer.Write(request)) break;
    }
    return grpc::Status::OK;
  }

  FaultProxy& proxy_;
  reapi::Execution::Stub execution_;
  reapi::ActionCache::Stub action_cache_;
  reapi::ContentAddressableStorage::Stub storage_;
  reapi::Capabilities::Stub capabilities_;
  bytestream::ByteStream::Stub streams_;
  longrunning::Operations::Stub operations_;
};

FaultProxy::FaultProxy(const std::string& engine)
    : services_(std::make_unique<Services>(*this, grpc::CreateChannel(engine, grpc::InsecureChannelCredentials()))) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
  services_->AddTo(builder);
  server_ = builder.BuildAndStart();
  EXPECT_NE(server_, nullptr);
}

FaultProxy::~FaultProxy() { server_->Shutdown(std::chrono::system_clock::now()); }

std::string FaultProxy::address() const { return StrCat("grpc://127.0.0.1:", port_); }

void FaultProxy::Inject(EngineFault fault) {
  const MutexLock lock(mutex_);
  faults_.push_back(std::move(fault));
}

void FaultProxy::Clear() {
  const MutexLock lock(mutex_);
  faults_.clear();
}

int FaultProxy::Calls(const std::string& method) const {
  const MutexLock lock(mutex_);
  const auto found = calls_.find(method);
  return found == calls_.end() ? 0 : found->second;
}

int FaultProxy::CallsThatSkipTheCache() const {
  const MutexLock lock(mutex_);
  return skipping_;
}

void FaultProxy::SkipsTheCache() {
  const MutexLock lock(mutex_);
  ++skipping_;
}

std::multimap<std::string, std::string> FaultProxy::LastMetadata() const {
  const MutexLock lock(mutex_);
  return metadata_;
}

std::optional<EngineFault> FaultProxy::Arrived(const std::string& method, const grpc::ServerContext& context) {
  const MutexLock lock(mutex_);
  ++calls_[method];
  metadata_.clear();
  for (const auto& [name, value] : context.client_metadata()) {
    metadata_.emplace(std::string(name.data(), name.size()), std::string(value.data(), value.size()));
  }
  for (auto fault = faults_.begin(); fault != faults_.end(); ++fault) {
    if (fault->method != method) continue;
    EngineFault hit = *fault;
    if (fault->times > 0 && --fault->times == 0) faults_.erase(fault);
    return hit;
  }
  return std::nullopt;
}

}  // namespace kernix::testing
