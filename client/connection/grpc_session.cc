// SPDX-License-Identifier: Apache-2.0
#include "client/connection/grpc_session.h"

#include <grpc/grpc.h>
#include <grpcpp/create_channel_posix.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"

namespace kernix {
namespace {

// By default, gRPC polls with epoll1, which leaves an epoll set open when gRPC ends and uses it again when gRPC starts.
// After a fork(), parent and child share that set, and each loses events to the other. The poll strategy leaves nothing
// behind. gRPC reads the strategy only from the environment, once, when it first starts.
constexpr char kVariable[] = "GRPC_POLL_STRATEGY";
constexpr char kName[] = "GRPC_POLL_STRATEGY=";
char setting[] = "GRPC_POLL_STRATEGY=poll";

// During its lifetime, the environment is another array that contains the setting. setenv() would move or shift the
// array that other threads may be reading.
class PollSetting {
 public:
  PollSetting() : own_(environ), with_setting_(*new std::vector<char*>) {  // not freed: a reader may use it
    for (char** variable = own_; variable != nullptr && *variable != nullptr; ++variable) {
      const bool is_ours = std::strncmp(*variable, kName, sizeof(kName) - 1) == 0;
      with_setting_.push_back(is_ours ? setting : *variable);
      if (is_ours) replaced_ = *variable;
    }
    if (replaced_ == nullptr) with_setting_.push_back(setting);
    with_setting_.push_back(nullptr);
    environ = with_setting_.data();
  }

  ~PollSetting() {
    if (environ == with_setting_.data()) {
      TakeOver();
      environ = own_;
    } else if (replaced_ != nullptr) {  // another thread's setenv() has copied our array into one of its own
      putenv(replaced_);
    } else {
      unsetenv(kVariable);
    }
  }
  PollSetting(const PollSetting&) = delete;
  PollSetting& operator=(const PollSetting&) = delete;

 private:
  // Applies the changes that other threads have made in the array. They can have replaced or removed variables, but not
  // added any.
  void TakeOver() {
    char** to = own_;
    for (char** from = with_setting_.data(); *from != nullptr; ++from) {
      char* const variable = *from == setting ? replaced_ : *from;
      if (variable != nullptr) *to++ = variable;
    }
    if (to != nullptr) *to = nullptr;
  }

  char** const own_;
  std::vector<char*>& with_setting_;
  char* replaced_ = nullptr;
};

// No fork can happen while it is held, since that is within a section.
Mutex starting;
bool chosen ABSL_GUARDED_BY(starting) = false;

}  // namespace

GrpcUse::GrpcUse() : runs_(!ForkGate::Ending()) {
  if (!runs_) return;
  const MutexLock lock(starting);
  std::optional<PollSetting> poll;
  if (!std::exchange(chosen, true)) poll.emplace();
  grpc_init();
}

GrpcUse::~GrpcUse() {
  if (runs_) grpc_shutdown();
}

GrpcSession::GrpcSession(UniqueFd socket) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);  // no limit on the daemon's messages
  channel_ = grpc::CreateCustomInsecureChannelFromFd("localhost", socket.release(), arguments);
  stub_ = v1::Kernix::NewStub(channel_);
}

}  // namespace kernix
