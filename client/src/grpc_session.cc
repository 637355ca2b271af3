// SPDX-License-Identifier: Apache-2.0
#include "client/src/grpc_session.h"

#include <grpc/grpc.h>
#include <grpcpp/create_channel_posix.h>

#include <cstdlib>
#include <optional>
#include <string>

namespace kernix {
namespace {

constexpr char kStrategyVariable[] = "GRPC_POLL_STRATEGY";

void SetOrUnset(const std::optional<std::string>& value) {
  if (value) {
    setenv(kStrategyVariable, value->c_str(), 1);
  } else {
    unsetenv(kStrategyVariable);
  }
}

// Its default way of polling, epoll1, leaves an epoll set open when gRPC ends and takes it up again when it starts.
// After a fork() that one set is the parent's and the child's, and each of them loses events to the other. The poll
// strategy has nothing that stays. gRPC takes it from the environment, once, when it starts first, and in no other way.
void ChoosePolling() {
  const char* present = std::getenv(kStrategyVariable);
  const std::optional<std::string> saved = present ? std::make_optional<std::string>(present) : std::nullopt;
  SetOrUnset("poll");
  grpc_init();
  SetOrUnset(saved);
  grpc_shutdown();
}

}  // namespace

void PrepareGrpc() {
  const ForkGate::Section section;
  if (ForkGate::Ending()) return;
  [[maybe_unused]] static const bool chosen = (ChoosePolling(), true);
}

GrpcSession::GrpcSession(UniqueFd socket) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);  // what a daemon sends is not limited by us
  channel_ = grpc::CreateCustomInsecureChannelFromFd("localhost", socket.release(), arguments);
  stub_ = v1::Kernix::NewStub(channel_);
}

}  // namespace kernix
