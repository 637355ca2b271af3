// SPDX-License-Identifier: Apache-2.0
//
// Calls of an engine: with its token, within a time limit, and again if that may help. Internal to the room.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "build/bazel/remote/execution/v2/remote_execution.grpc.pb.h"
#include "common/base/cancellation.h"
#include "common/base/metrics.h"
#include "common/os/env.h"
#include "daemon/remote/token_file.h"
#include "daemon/remote/upstream.h"
#include "google/bytestream/bytestream.grpc.pb.h"
#include "google/longrunning/operations.grpc.pb.h"

namespace kernix::remote {

namespace reapi = build::bazel::remote::execution::v2;

// Where an engine listens, as users write it.
struct EngineAddress {
  std::string target;  // as gRPC names it
  bool tls = false;
  bool on_this_host = false;  // nobody can overhear the bytes sent there
};

// Reads grpc://HOST:PORT, grpcs://HOST:PORT or unix:///PATH. Otherwise INVALID_REQUEST with the reason.
absl::StatusOr<EngineAddress> ParseEngineAddress(const std::string& address);

struct ConnectionCounters {
  MetricCounter retries;
  MetricCounter bytes_sent;  // of blobs, as they travel
  MetricCounter bytes_received;
};

// Thread-safe.
class Connection {
 public:
  // As Upstream::Open().
  static absl::StatusOr<std::unique_ptr<Connection>> Open(Env& env, UpstreamOptions options);

  // Makes one call of a stub. Called again for each try.
  using Attempt = std::function<grpc::Status(grpc::ClientContext& context)>;

  // Tries until it works, until it cannot work, or until the limits. `asked`: as EngineError().
  absl::Status Call(const Limits& limits, std::string_view asked, const Attempt& attempt);

  // The parts of Call(), for what keeps track of its tries itself: one try, in all of the time that is left,
  grpc::Status TryOnce(const Limits& limits, const Attempt& attempt);
  // and the wait before the next one after `tries` of them, which is counted. False if there is no time for that.
  bool WaitToRetry(const Limits& limits, int tries, const grpc::Status& status);

  reapi::ActionCache::Stub& action_cache() { return *action_cache_; }
  reapi::ContentAddressableStorage::Stub& storage() { return *storage_; }
  reapi::Capabilities::Stub& capabilities() { return *capabilities_; }
  google::bytestream::ByteStream::Stub& streams() { return *streams_; }
  reapi::Execution::Stub& execution() { return *execution_; }
  google::longrunning::Operations::Stub& operations() { return *operations_; }

  uint64_t TokenVersion() const { return token_ == nullptr ? 0 : token_->Version(); }

  Env& env() { return env_; }
  const UpstreamOptions& options() const { return options_; }
  ConnectionCounters& counters() { return counters_; }

 private:
  Connection(Env& env, UpstreamOptions options, TokenHeader header, const std::shared_ptr<grpc::Channel>& channel);

  grpc::Status Try(const Limits& limits, Duration time, const Attempt& attempt);

  Env& env_;
  const UpstreamOptions options_;
  ConnectionCounters counters_;
  const std::unique_ptr<TokenFile> token_;  // null: no token
  const std::unique_ptr<reapi::ActionCache::Stub> action_cache_;
  const std::unique_ptr<reapi::ContentAddressableStorage::Stub> storage_;
  const std::unique_ptr<reapi::Capabilities::Stub> capabilities_;
  const std::unique_ptr<google::bytestream::ByteStream::Stub> streams_;
  const std::unique_ptr<reapi::Execution::Stub> execution_;
  const std::unique_ptr<google::longrunning::Operations::Stub> operations_;
};

}  // namespace kernix::remote
