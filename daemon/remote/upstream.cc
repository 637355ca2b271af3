// SPDX-License-Identifier: Apache-2.0
#include "daemon/remote/upstream.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "common/base/error.h"
#include "common/base/exceptions.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "daemon/exec/remote_execution.h"
#include "daemon/remote/blob_transfer.h"
#include "daemon/remote/circuit_breaker.h"
#include "daemon/remote/connection.h"

namespace kernix::remote {

namespace {

// By Upstream::Call.
constexpr std::array kCallNames = {"facts", "find_result", "put_result", "read", "write", "execute"};

// How a call ended.
enum class UpstreamOutcome {
  kDone,
  kAbsent,     // the engine does not have it
  kFailed,     // after all retries
  kRefused,    // by the circuit breaker: the engine was not asked
  kCancelled,  // by the caller
};
constexpr std::array kOutcomeNames = {"done", "absent", "failed", "refused", "cancelled"};

// More time for calls that move bytes, on a slow network.
Duration TimeFor(uint64_t bytes) { return std::chrono::seconds(bytes >> 20); }

template <typename Messages, typename Value>
bool Holds(const Messages& messages, Value value) {
  return std::find(messages.begin(), messages.end(), value) != messages.end();
}

// Older engines name no digest function: it was always SHA-256.
bool UsesSha256(const reapi::CacheCapabilities& cache) {
  return cache.digest_functions().empty() || Holds(cache.digest_functions(), reapi::DigestFunction::SHA256);
}

UpstreamFacts FactsFrom(const reapi::ServerCapabilities& said) {
  const reapi::CacheCapabilities& cache = said.cache_capabilities();
  return {
      .max_batch_bytes = UsableBatchBytes(cache.max_batch_total_size_bytes()),
      .may_write_results = cache.action_cache_update_capabilities().update_enabled(),
      .executes = said.execution_capabilities().exec_enabled(),
      .takes_absolute_links = cache.symlink_absolute_path_strategy() != reapi::SymlinkAbsolutePathStrategy::DISALLOWED};
}

// Nothing if they are more than `most`. An engine may claim any size.
std::optional<uint64_t> SumOfSizes(const std::set<exec::BlobDigest>& digests, uint64_t most) {
  uint64_t sum = 0;
  for (const exec::BlobDigest& digest : digests) {
    if (digest.size > most - sum) return std::nullopt;
    sum += digest.size;
  }
  return sum;
}

// Whether the engine works, whatever it says of this call.
bool IsAnswer(const absl::Status& status) {
  return status.ok() || absl::IsNotFound(status) || absl::IsPermissionDenied(status) || IsNoWorker(status);
}

UpstreamOutcome OutcomeOf(const absl::Status& status) {
  if (status.ok()) return UpstreamOutcome::kDone;
  if (absl::IsNotFound(status)) return UpstreamOutcome::kAbsent;
  return absl::IsCancelled(status) ? UpstreamOutcome::kCancelled : UpstreamOutcome::kFailed;
}

const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

}  // namespace

// Counts the calls of Upstream. Thread-safe.
class Upstream::Metrics {
 public:
  void Count(Call call, UpstreamOutcome outcome) {
    counts_[static_cast<size_t>(call)][static_cast<size_t>(outcome)].Add();
  }
  void Observe(Call call, double seconds) { seconds_[static_cast<size_t>(call)].Observe(seconds); }

  void Register(MetricsRegistry& registry) const {
    for (size_t call = 0; call < kCallNames.size(); ++call) {
      for (size_t outcome = 0; outcome < kOutcomeNames.size(); ++outcome) {
        registry.AddCounter("kernix_upstream_calls_total",
                            "What the upstream engine was asked for, and how that ended.", counts_[call][outcome],
                            {{"call", kCallNames[call]}, {"outcome", kOutcomeNames[outcome]}});
      }
      registry.AddHistogram("kernix_upstream_seconds", "How long the upstream engine took, with all retries.",
                            seconds_[call], {{"call", kCallNames[call]}});
    }
  }

 private:
  std::array<std::array<MetricCounter, kOutcomeNames.size()>, kCallNames.size()> counts_;
  std::array<MetricHistogram, kCallNames.size()> seconds_;
};

Upstream::Upstream(Env& env, std::unique_ptr<Connection> connection)
    : env_(env),
      connection_(std::move(connection)),
      options_(connection_->options()),
      breaker_(env, options_.address),
      metrics_(std::make_unique<Metrics>()) {}

Upstream::~Upstream() = default;

absl::StatusOr<std::unique_ptr<Upstream>> Upstream::Open(Env& env, UpstreamOptions options) {
  KERNIX_ASSIGN_OR_RETURN(std::unique_ptr<Connection> connection, Connection::Open(env, std::move(options)));
  return std::unique_ptr<Upstream>(new Upstream(env, std::move(connection)));
}

template <typename Work>
auto Upstream::Perform(Call call, uint64_t bytes, const Limits& callers, const Work& work) -> decltype(work(callers)) {
  const std::optional<CircuitBreaker::Permit> permit = breaker_.Ask();
  if (!permit) {
    metrics_->Count(call, UpstreamOutcome::kRefused);
    return Broken();
  }
  const MonotonicTime begin = env_.Now();
  const Limits limits(callers.cancellation, std::min(begin + options_.timeout, callers.deadline) + TimeFor(bytes));
  auto result = CatchExceptions("the upstream engine", [&] { return work(limits); });
  metrics_->Observe(call, std::chrono::duration<double>(env_.Now() - begin).count());
  Report(call, *permit, StatusOf(result));
  return result;
}

void Upstream::Report(Call call, CircuitBreaker::Permit permit, const absl::Status& status) {
  metrics_->Count(call, OutcomeOf(status));
  if (absl::IsCancelled(status)) {
    breaker_.Abandoned(permit);
  } else if (IsAnswer(status)) {
    breaker_.Answered(permit);
  } else if (breaker_.Failed(permit, status)) {
    const MutexLock lock(mutex_);
    facts_.reset();  // it may be another engine that answers in the end
  }
}

absl::Status Upstream::Broken() const {
  return MakeError(v1::ErrorDetail::UNREACHABLE,
                   StrCat("the engine at ", options_.address, " was not asked, because it has failed several times: ",
                          breaker_.state().last_error, " kernixd asks it again from time to time."));
}

std::optional<UpstreamFacts> Upstream::known_facts() const {
  const MutexLock lock(mutex_);
  return facts_;
}

absl::StatusOr<UpstreamFacts> Upstream::AskForFacts(const Limits& limits) {
  if (const std::optional<UpstreamFacts> known = known_facts()) return *known;
  reapi::GetCapabilitiesRequest request;
  request.set_instance_name(options_.instance);
  reapi::ServerCapabilities response;
  KERNIX_RETURN_IF_ERROR(connection_->Call(limits, "say what it can do", [&](grpc::ClientContext& context) {
    return connection_->capabilities().GetCapabilities(&context, request, &response);
  }));
  if (!UsesSha256(response.cache_capabilities())) {
    return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                     StrCat("the engine at ", options_.address, " does not use SHA-256, as kernixd does"));
  }
  const MutexLock lock(mutex_);
  facts_ = FactsFrom(response);
  return *facts_;
}

UpstreamState Upstream::state() const { return {breaker_.state(), known_facts()}; }

void Upstream::Register(MetricsRegistry& registry) const {
  metrics_->Register(registry);
  const ConnectionCounters& counters = connection_->counters();
  registry.AddCounter("kernix_upstream_retries_total", "Repeated calls of the upstream engine.", counters.retries);
  registry.AddCounters("kernix_upstream_bytes_total", "Bytes of blobs to and from the upstream engine, on the wire.",
                       "direction", {{"sent", &counters.bytes_sent}, {"received", &counters.bytes_received}});
  registry.AddCounter("kernix_upstream_breaker_openings_total",
                      "How often kernixd stopped asking the upstream engine after repeated failures.",
                      breaker_.openings());
}

absl::StatusOr<UpstreamFacts> Upstream::Facts(const Limits& limits) {
  if (const std::optional<UpstreamFacts> known = known_facts()) return *known;
  return Perform(Call::kFacts, 0, limits, [&](const Limits& own) { return AskForFacts(own); });
}

absl::StatusOr<std::optional<std::vector<OutputFile>>> Upstream::FindResult(const exec::BlobDigest& action,
                                                                            const std::vector<std::string>& along,
                                                                            const Limits& limits) {
  using Files = std::vector<OutputFile>;
  reapi::GetActionResultRequest request;
  request.set_instance_name(options_.instance);
  *request.mutable_action_digest() = exec::ToReapi(action);
  request.mutable_inline_output_files()->Assign(along.begin(), along.end());
  absl::StatusOr<Files> files = Perform(Call::kFindResult, 0, limits, [&](const Limits& own) -> absl::StatusOr<Files> {
    reapi::ActionResult result;
    KERNIX_RETURN_IF_ERROR(connection_->Call(own, "find a result", [&](grpc::ClientContext& context) {
      return connection_->action_cache().GetActionResult(&context, request, &result);
    }));
    if (result.exit_code() != 0) return absl::NotFoundError("the result of a command that failed");
    return FilesOf(options_, result);
  });
  if (files.ok()) return std::make_optional(*std::move(files));
  if (absl::IsNotFound(files.status())) return std::nullopt;
  return files.status();
}

absl::Status Upstream::PutResult(const exec::BlobDigest& action, const std::vector<OutputFile>& files,
                                 const Limits& limits) {
  reapi::UpdateActionResultRequest request;
  request.set_instance_name(options_.instance);
  *request.mutable_action_digest() = exec::ToReapi(action);
  for (const OutputFile& file : files) {
    reapi::OutputFile& output = *request.mutable_action_result()->add_output_files();
    output.set_path(file.path);
    *output.mutable_digest() = exec::ToReapi(file.digest);
  }
  return Perform(Call::kPutResult, 0, limits, [&](const Limits& own) {
    return connection_->Call(own, "keep a result", [&](grpc::ClientContext& context) {
      reapi::ActionResult kept;
      return connection_->action_cache().UpdateActionResult(&context, request, &kept);
    });
  });
}

absl::StatusOr<std::vector<exec::Content>> Upstream::Read(const std::vector<exec::BlobDigest>& digests,
                                                          uint64_t max_bytes, const Limits& limits) {
  using Blobs = std::map<exec::BlobDigest, exec::Content>;
  if (digests.empty()) return std::vector<exec::Content>();
  const std::set<exec::BlobDigest> distinct(digests.begin(), digests.end());
  const std::optional<uint64_t> bytes = SumOfSizes(distinct, max_bytes);
  if (!bytes) {
    return MakeError(v1::ErrorDetail::RESOURCE, StrCat(distinct.size(), " blobs of the engine at ", address(),
                                                       " have more than ", max_bytes, " bytes, which is the limit"));
  }
  KERNIX_ASSIGN_OR_RETURN(const Blobs blobs,
                          Perform(Call::kRead, *bytes, limits, [&](const Limits& own) -> absl::StatusOr<Blobs> {
                            KERNIX_ASSIGN_OR_RETURN(const UpstreamFacts facts, AskForFacts(own));
                            return ReadBlobs(*connection_, own, facts, distinct);
                          }));
  std::vector<exec::Content> contents;
  for (const exec::BlobDigest& digest : digests) contents.push_back(blobs.at(digest));
  return contents;
}

absl::Status Upstream::Write(const std::vector<Blob>& blobs, const Limits& limits) {
  std::map<exec::BlobDigest, exec::Content> contents;
  std::set<exec::BlobDigest> digests;
  for (const Blob& blob : blobs) {
    contents.emplace(blob.digest, blob.content);
    digests.insert(blob.digest);
  }
  return Write(
      std::move(digests), [&](const exec::BlobDigest& digest) { return contents.at(digest); }, limits);
}

absl::Status Upstream::Write(std::set<exec::BlobDigest> digests, const LoadBlob& load, const Limits& limits) {
  std::erase_if(digests, [](const exec::BlobDigest& digest) { return digest.size == 0; });  // each engine has that one
  if (digests.empty()) return absl::OkStatus();
  return Perform(Call::kWrite, 0, limits, [&](Limits own) -> absl::Status {
    KERNIX_ASSIGN_OR_RETURN(const UpstreamFacts facts, AskForFacts(own));
    KERNIX_ASSIGN_OR_RETURN(const std::set<exec::BlobDigest> missing, FindMissing(*connection_, own, digests));
    std::set<exec::BlobDigest> to_send;
    std::set_intersection(digests.begin(), digests.end(), missing.begin(), missing.end(),
                          std::inserter(to_send, to_send.end()));
    own.deadline += TimeFor(SumOfSizes(to_send, std::numeric_limits<int64_t>::max()).value_or(0));
    return WriteBlobs(*connection_, own, facts, to_send, load);
  });
}

absl::StatusOr<Execution> Upstream::Execute(const exec::BlobDigest& action, const ExecuteOptions& options,
                                            const Limits& limits) {
  return Perform(Call::kExecute, 0, limits, [&](Limits own) -> absl::StatusOr<Execution> {
    own.deadline += options.time_limit;
    return remote::Execute(*connection_, own, action, options);
  });
}

void Upstream::NoteQuery(const absl::Status& end, bool has_found) {
  if (absl::IsDeadlineExceeded(end)) breaker_.QueryWasLate(end);
  if (has_found) breaker_.QueryFound();
}

}  // namespace kernix::remote
