// SPDX-License-Identifier: Apache-2.0
#include "client/src/grpc_session.h"

#include <grpcpp/create_channel_posix.h>

#include <atomic>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "client/src/fork_safety.h"

namespace kernix {
namespace {

constexpr char kStrategyVariable[] = "GRPC_POLL_STRATEGY";
// The default, epoll1, leaves an epoll set open when gRPC ends and takes it up again when it starts. After a fork()
// that one set is the parent's and the child's, and each of them loses events to the other. This one has nothing that
// stays.
constexpr char kStrategy[] = "poll";

std::optional<std::string> Strategy() {
  const char* value = std::getenv(kStrategyVariable);
  return value != nullptr ? std::make_optional<std::string>(value) : std::nullopt;
}

struct Polling {
  ForkSafeMutex mutex;
  bool chosen ABSL_GUARDED_BY(mutex) = false;
  bool restored ABSL_GUARDED_BY(mutex) = false;
  std::optional<std::string> before ABSL_GUARDED_BY(mutex);
};

Polling& ThePolling() {
  static auto* polling = new Polling;
  return *polling;
}

[[maybe_unused]] const Polling& kMadeAtLoad = ThePolling();

std::atomic<bool> session_made{false};

}  // namespace

void ChoosePolling() {
  Polling& polling = ThePolling();
  const MutexLock lock(polling.mutex);
  if (std::exchange(polling.chosen, true)) return;
  polling.before = Strategy();
  setenv(kStrategyVariable, kStrategy, 1);
}

void RestorePolling() {
  Polling& polling = ThePolling();
  const MutexLock lock(polling.mutex);
  if (!polling.chosen || !session_made || std::exchange(polling.restored, true) || Strategy() != kStrategy) return;
  if (polling.before) {
    setenv(kStrategyVariable, polling.before->c_str(), 1);
  } else {
    unsetenv(kStrategyVariable);
  }
}

GrpcSession::GrpcSession(UniqueFd socket) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);         // what a daemon sends is not limited by us
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);  // pings that find out how fast a network is
  channel_ = grpc::CreateCustomInsecureChannelFromFd("localhost", socket.release(), arguments);
  session_made = true;
  stub_ = v1::Kernix::NewStub(channel_);
}

}  // namespace kernix
