// SPDX-License-Identifier: Apache-2.0
//
// An engine of the Remote Execution API, version 2, as a cache: results by the digest of an action, blobs by digest.
// Buildbarn, NativeLink, BuildBuddy, BuildGrid, buildbox-casd and others are such engines.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/cancellation.h"
#include "common/base/metrics.h"
#include "common/base/mutex.h"
#include "common/os/env.h"
#include "daemon/exec/blob.h"
#include "daemon/remote/circuit_breaker.h"

namespace kernix::remote {

class Connection;

struct UpstreamOptions {
  std::string address;   // grpc://HOST:PORT, grpcs://HOST:PORT (TLS) or unix:///PATH; empty: none
  std::string instance;  // the engine's name for a cache of its own; empty is a name, too
  // PEM files, read once. No `ca_file`: the machine's own authorities. Client certificate and key: both or neither.
  std::string ca_file;           // who may sign the engine's certificate
  std::string certificate_file;  // this node's own, for engines that ask for one
  std::string key_file;
  // Its text is sent in the header of that name, after the scheme (see TokenFile). Read again when the file has
  // changed. Needs TLS, a Unix socket or an address of this host.
  std::string token_file;
  std::string token_header = "authorization: Bearer";
  // Of a call of this class with all of its retries. A call that moves bytes has a second more for each MiB of them.
  Duration timeout{std::chrono::seconds(10)};

  bool operator==(const UpstreamOptions&) const = default;
};

// The limits of a call of Upstream, which may take several calls of the engine.
struct Limits {
  // Most callers have no deadline but the upstream's. NOLINTNEXTLINE(google-explicit-constructor)
  Limits(Cancellation* cancelled_by = nullptr, MonotonicTime until = MonotonicTime::max())
      : cancellation(cancelled_by), deadline(until) {}

  bool IsCancelled() const { return cancellation != nullptr && cancellation->cancelled(); }

  Cancellation* cancellation;  // may be null
  MonotonicTime deadline;      // calls that move bytes have a second more for each MiB
};

struct Blob {
  exec::BlobDigest digest;
  exec::Content content;
};

struct OutputFile {
  std::string path;
  exec::BlobDigest digest;
  exec::Content content = nullptr;  // null unless the engine has sent it along; checked against the digest

  bool operator==(const OutputFile&) const = default;
};

// The engine's capabilities.
struct UpstreamFacts {
  uint64_t max_batch_bytes = 0;    // that this class puts into one message
  bool may_write_results = false;  // the engine lets clients put results; a token may still be refused
  bool executes = false;
  bool takes_absolute_links = false;  // in an input root
};

// The content of a blob that the engine does not have.
using LoadBlob = std::function<absl::StatusOr<exec::Content>(const exec::BlobDigest& digest)>;

enum class ExecutionStage { kQueued, kRunning };

struct ExecuteOptions {
  bool skip_cache_lookup = false;                          // run it even if the engine has a result
  Duration time_limit{0};                                  // for waiting and running, beside UpstreamOptions::timeout
  Duration queue_limit{0};                                 // for waiting until it runs first; 0: none
  std::function<void(ExecutionStage)> on_stage = nullptr;  // called in the caller's thread, perhaps several times
};

// How a command ended.
struct Execution {
  int exit_code = 0;
  bool timed_out = false;         // by the engine's own limit, or ExecuteOptions::time_limit
  bool from_cache = false;        // the engine did not run it
  std::vector<OutputFile> files;  // lacks what the command did not write
  // What it printed: the text itself, or the digest of a blob.
  std::string stdout_text, stderr_text;
  std::optional<exec::BlobDigest> stdout_digest, stderr_digest;
};

struct UpstreamState : EngineHealth {
  std::optional<UpstreamFacts> facts;  // nothing: not known yet
};

// Whether this error of Execute() says that no worker has taken the action: none came, or, with the code
// FAILED_PRECONDITION, the engine lacks a part of the action or a worker for it. The engine itself has answered.
bool IsNoWorker(const absl::Status& status);

// Thread-safe. Each call blocks until it is done, until the timeout, or until its `limits`, so that several calls can
// have one deadline. If the engine says that a call may work later, it tries again, a few times and after pauses.
// Errors name the address, what was asked, the engine's own words and what to do:
//   UNREACHABLE      no answer in time, or the engine is known to be broken
//   INVALID_REQUEST  the engine does not know the instance, or refuses the token or the client certificate
//   RESOURCE         the engine has no room, or the blobs are larger than the caller takes
//   CANCELLED
//   INTERNAL         the engine breaks the protocol: other bytes than the digest says, half an answer
class Upstream {
 public:
  // Reads the files of `options`; connects with the first call. `env` must outlive it. INVALID_REQUEST: an option does
  // not make sense, or a file cannot be read.
  static absl::StatusOr<std::unique_ptr<Upstream>> Open(Env& env, UpstreamOptions options);
  ~Upstream();
  Upstream(const Upstream&) = delete;
  Upstream& operator=(const Upstream&) = delete;

  // Asks the engine once, then remembers the answer.
  absl::StatusOr<UpstreamFacts> Facts(const Limits& limits = {});

  // The outputs of the action with this digest. Nothing: the engine has no result, or that of a command that failed.
  // Asks the engine to send the contents of the outputs `along`; many do not, or only if they are small.
  absl::StatusOr<std::optional<std::vector<OutputFile>>> FindResult(const exec::BlobDigest& action,
                                                                    const std::vector<std::string>& along = {},
                                                                    const Limits& limits = {});

  // Keeps `files`, whose blobs the engine must have, as the result of the action, instead of an earlier one.
  absl::Status PutResult(const exec::BlobDigest& action, const std::vector<OutputFile>& files,
                         const Limits& limits = {});

  // The blobs, in the order of `digests`, each checked against its digest. NOT_FOUND names one that the engine does not
  // have. Reads nothing if they are more than `max_bytes` together.
  absl::StatusOr<std::vector<exec::Content>> Read(const std::vector<exec::BlobDigest>& digests, uint64_t max_bytes,
                                                  const Limits& limits = {});

  // Sends those of `blobs` that the engine does not have.
  absl::Status Write(const std::vector<Blob>& blobs, const Limits& limits = {});

  // The same for blobs that `load`, which must have each of them, loads only if they are missing. An error of `load`
  // ends the call.
  absl::Status Write(std::set<exec::BlobDigest> digests, const LoadBlob& load, const Limits& limits = {});

  // Has the engine run the action with this digest. It must have the action's messages and inputs. A command that fails
  // is no error. When the call ends early (a cancellation, a limit), the engine is told to stop the action. An action
  // that has waited for too long is an error that IsNoWorker() knows.
  absl::StatusOr<Execution> Execute(const exec::BlobDigest& action, const ExecuteOptions& options,
                                    const Limits& limits = {});

  // How a query has ended: several calls with one deadline, which ask for one thing. An engine with which all end by
  // the deadline is broken, though it answers some calls.
  void NoteQuery(const absl::Status& end, bool has_found);

  UpstreamState state() const;
  const std::string& address() const { return options_.address; }
  Duration timeout() const { return options_.timeout; }

  // Must be called before the first call of the others. The registry must not be read after this object is destroyed.
  void Register(MetricsRegistry& registry) const;

 private:
  enum class Call { kFacts, kFindResult, kPutResult, kRead, kWrite, kExecute };
  class Metrics;

  Upstream(Env& env, std::unique_ptr<Connection> connection);

  // Runs `work` unless the breaker is open, and tells breaker and metrics how it ended. `bytes`: that it may move.
  template <typename Work>
  auto Perform(Call call, uint64_t bytes, const Limits& callers, const Work& work) -> decltype(work(callers));
  void Report(Call call, CircuitBreaker::Permit permit, const absl::Status& status);
  absl::Status Broken() const;

  std::optional<UpstreamFacts> known_facts() const;
  absl::StatusOr<UpstreamFacts> AskForFacts(const Limits& limits);

  Env& env_;
  const std::unique_ptr<Connection> connection_;
  const UpstreamOptions& options_;  // the connection's
  CircuitBreaker breaker_;
  const std::unique_ptr<Metrics> metrics_;
  mutable Mutex mutex_;
  std::optional<UpstreamFacts> facts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::remote
