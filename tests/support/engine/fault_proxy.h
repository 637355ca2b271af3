// SPDX-License-Identifier: Apache-2.0
//
// For tests: stands between a client and a real engine, forwards each call, and spoils those that a test names.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/grpcpp.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"

namespace kernix::testing {

struct EngineFault {
  std::string method;  // "GetActionResult", "Read": without the service
  int times = 1;       // how many calls from now on; 0: all
  // What happens, in this order. Each of these is optional.
  bool hang = false;                        // no answer until the client gives up
  bool queue = false;                       // of Execute: the action waits for a worker until the client gives up
  std::optional<grpc::Status> answer = {};  // instead of the engine's
  int cut_after = -1;                       // a stream from the engine breaks after so many messages
  std::function<void(google::protobuf::Message&)> change = nullptr;  // of each message of the engine
};

// Thread-safe.
class FaultProxy {
 public:
  // `engine`: as gRPC names it, "unix:///PATH". Listens on a free port.
  explicit FaultProxy(const std::string& engine);
  ~FaultProxy();

  std::string address() const;  // grpc://127.0.0.1:PORT

  void Inject(EngineFault fault);
  void Clear();

  // How many calls of the method have arrived.
  int Calls(const std::string& method) const;
  // How many calls of Execute want no answer from the engine's cache.
  int CallsThatSkipTheCache() const;
  // The metadata of the last call.
  std::multimap<std::string, std::string> LastMetadata() const;

 private:
  class Services;

  // Counts the call and returns its fault, if it has one.
  std::optional<EngineFault> Arrived(const std::string& method, const grpc::ServerContext& context);
  void SkipsTheCache();

  mutable Mutex mutex_;
  std::vector<EngineFault> faults_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int> calls_ ABSL_GUARDED_BY(mutex_);
  std::multimap<std::string, std::string> metadata_ ABSL_GUARDED_BY(mutex_);
  int skipping_ ABSL_GUARDED_BY(mutex_) = 0;
  int port_ = 0;
  const std::unique_ptr<Services> services_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace kernix::testing
