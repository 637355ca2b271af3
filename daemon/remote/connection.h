// SPDX-License-Identifier: Apache-2.0
//
// Calls of an engine: with its token, within a time limit, and again if that may help; its errors; and the longest
// call, an execution. Internal to the room.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "build/bazel/remote/execution/v2/remote_execution.grpc.pb.h"
#include "common/base/cancellation.h"
#include "common/base/metrics.h"
#include "common/base/mutex.h"
#include "common/os/env.h"
#include "common/os/file_identity.h"
#include "daemon/exec/blob.h"
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

// What an engine answered, as an error for the person who runs kernixd. `status` must not be OK. `asked` says what the
// engine was to do: "find a result". The code stays that of `status`; upstream.h lists the kinds.
absl::Status EngineError(const grpc::Status& status, const UpstreamOptions& options, std::string_view asked);

inline constexpr int kMaxTries = 4;

// Whether the same call may succeed later: the engine is away, has no room, or the connection broke.
bool MayWorkLater(const grpc::Status& status);

// How long the engine asks to wait (google.rpc.RetryInfo), if it does.
std::optional<Duration> AskedPause(const grpc::Status& status);

// How long to wait before the nth retry, from 1: longer each time, and never the same for two callers, so that they do
// not come back together.
Duration PauseBeforeRetry(int retry);

// How engines want a token.
struct TokenHeader {
  std::string name;    // in lower case, as HTTP/2 has it
  std::string scheme;  // "Bearer", "Basic"; empty: the text stands alone

  bool operator==(const TokenHeader&) const = default;
};

// "NAME" or "NAME: SCHEME". INVALID_REQUEST says what is wrong.
absl::StatusOr<TokenHeader> ParseTokenHeader(std::string_view text);

// A token, a key or a password in a file that somebody else, such as an orchestrator, replaces. Thread-safe.
class TokenFile {
 public:
  // `env` must outlive it.
  TokenFile(Env& env, std::string path, TokenHeader header)
      : env_(env), path_(std::move(path)), header_(std::move(header)) {}

  const std::string& header_name() const { return header_.name; }

  // The header's value: the scheme and the file's text without the space around it; with Basic, where the text is
  // USER:PASSWORD, its base64. Reads the file only if it may have changed; if it cannot be read any more, or holds no
  // token, the last value stays. INVALID_REQUEST if there is none.
  absl::StatusOr<std::string> Value();

 private:
  absl::StatusOr<std::string> Read() const;

  Env& env_;
  const std::string path_;
  const TokenHeader header_;
  Mutex mutex_;
  WatchedFile seen_ ABSL_GUARDED_BY(mutex_);
  bool settled_ ABSL_GUARDED_BY(mutex_) = false;
  std::string value_ ABSL_GUARDED_BY(mutex_);
};

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

// An execution of an action.

// Starts the action, whose messages and inputs the engine must have, and follows it to its end. A stream that breaks is
// picked up again where it was. If it ends before the action does (a cancellation, a limit), the engine is told to stop
// the action. If the action still waits for a worker then, the error is one of IsNoWorker().
absl::StatusOr<Execution> Execute(Connection& connection, const Limits& limits, const exec::BlobDigest& action,
                                  const ExecuteOptions& options);

// The files of a result. INTERNAL if one has no digest of SHA-256.
absl::StatusOr<std::vector<OutputFile>> FilesOf(const UpstreamOptions& options, const reapi::ActionResult& result);

}  // namespace kernix::remote
