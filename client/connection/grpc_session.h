// SPDX-License-Identifier: Apache-2.0
//
// gRPC over a connected socket, for one or a few calls.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>

#include "client/connection/fork_gate.h"
#include "common/os/unique_fd.h"
#include "kernix/v1/kernix.grpc.pb.h"

namespace kernix {

// Keeps gRPC running. Exists within one ForkGate::Section, and outlives its sessions: ending gRPC takes up to ten
// milliseconds, and with the last user of the process gRPC ends with all its threads. Once the process exits, it does
// nothing.
//
// When gRPC first starts, it chooses how it polls. For that moment the constructor replaces the environment: threads
// that read it meanwhile see one additional variable; changes that they make are kept.
class GrpcUse {
 public:
  GrpcUse();
  ~GrpcUse();
  GrpcUse(const GrpcUse&) = delete;
  GrpcUse& operator=(const GrpcUse&) = delete;

 private:
  const bool runs_;
};

// Exists within the life of a GrpcUse.
class GrpcSession {
 public:
  explicit GrpcSession(UniqueFd socket);
  GrpcSession(const GrpcSession&) = delete;
  GrpcSession& operator=(const GrpcSession&) = delete;

  v1::Kernix::Stub& stub() { return *stub_; }

  // One unary call. If `section` is interrupted, it ends early with CANCELLED. Null: never interrupted.
  template <typename Request, typename Response>
  grpc::Status Call(grpc::Status (v1::Kernix::Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                    const Request& request, Response* response, std::chrono::milliseconds timeout,
                    ForkGate::Section* section);

 private:
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Kernix::Stub> stub_;
};

// Cancels a call if the section that it belongs to is interrupted.
class InterruptibleContext {
 public:
  explicit InterruptibleContext(ForkGate::Section* section) : section_(section) {
    if (section_ != nullptr) section_->OnInterrupt([this] { context_.TryCancel(); });
  }
  ~InterruptibleContext() {
    if (section_ != nullptr) section_->OnInterrupt(nullptr);
  }
  InterruptibleContext(const InterruptibleContext&) = delete;
  InterruptibleContext& operator=(const InterruptibleContext&) = delete;

  grpc::ClientContext& operator*() { return context_; }
  grpc::ClientContext* operator->() { return &context_; }

 private:
  ForkGate::Section* section_;
  grpc::ClientContext context_;
};

template <typename Request, typename Response>
grpc::Status GrpcSession::Call(grpc::Status (v1::Kernix::Stub::*method)(grpc::ClientContext*, const Request&,
                                                                        Response*),
                               const Request& request, Response* response, std::chrono::milliseconds timeout,
                               ForkGate::Section* section) {
  InterruptibleContext context(section);
  context->set_deadline(std::chrono::system_clock::now() + timeout);
  return (stub_.get()->*method)(&*context, request, response);
}

}  // namespace kernix
