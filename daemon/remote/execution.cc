// SPDX-License-Identifier: Apache-2.0
#include <grpc/support/time.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "daemon/exec/remote_execution.h"
#include "daemon/remote/connection.h"

namespace kernix::remote {

namespace {

namespace longrunning = google::longrunning;

// How long the engine may take to hear that nobody waits for an action.
constexpr Duration kCancelTime = std::chrono::seconds(5);
constexpr std::string_view kAsked = "run an action";
// An engine may say nothing while a command runs. A stream that lasts longer than an attempt to connect was there.
constexpr Duration kLastsIfGood = std::chrono::seconds(6);

// gRPC and google.rpc number their codes alike.
grpc::Status ToGrpc(const google::rpc::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), status.message(), status.SerializeAsString());
}

gpr_timespec After(Duration time) {
  if (time <= Duration(0)) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(time.count(), GPR_TIMESPAN));
}

// The engine's reports about the action decide whether it waits: without a report it does not, and if it has begun to
// run, it never waits again.
class Running {
 public:
  Running(Connection& connection, const Limits& limits, const ExecuteOptions& options)
      : connection_(connection), limits_(limits), options_(options), queue_end_(After(options.queue_limit)) {}

  // Returns when the action has ended, or cannot be followed any more.
  grpc::Status Follow(const exec::BlobDigest& action) {
    Env& env = connection_.env();
    lost_at_ = env.Now();
    for (int tries = 1;; ++tries) {
      const MonotonicTime begin = env.Now();
      heard_ = false;
      const grpc::Status status =
          connection_.TryOnce(limits_, [&](grpc::ClientContext& context) { return FollowOnce(context, action); });
      if (response_) return status;
      if (heard_ || env.Now() - begin > kLastsIfGood) lost_at_ = env.Now();
      if (!MayGoOn(status, tries)) return status;
      if (!connection_.WaitToRetry(limits_, std::min(tries, kMaxTries), status)) return status;
    }
  }

  // Tells the engine that nobody waits any more.
  void Abandon() {
    if (name_.empty()) return;
    longrunning::CancelOperationRequest request;
    request.set_name(name_);
    google::protobuf::Empty nothing;
    const Limits limits(nullptr, connection_.env().Now() + kCancelTime);
    // If that does not work either, the engine's own time limit remains.
    connection_
        .TryOnce(limits,
                 [&](grpc::ClientContext& context) {
                   return connection_.operations().CancelOperation(&context, request, &nothing);
                 })
        .IgnoreError();
  }

  // The engine has taken the action, whatever became of it.
  bool was_taken() const { return was_taken_; }
  // The engine has said that the action waits, and nothing later.
  bool waits() const { return waits_; }
  bool has_waited_too_long() const { return late_; }
  const std::optional<reapi::ExecuteResponse>& response() const { return response_; }

 private:
  // An action that the engine has taken is worth more patience than a call: while it starts again, say.
  bool MayGoOn(const grpc::Status& status, int tries) {
    if (limits_.IsCancelled() || late_ || failures_ == kMaxTries) return false;
    if (!was_taken_) return MayWorkLater(status) && tries < kMaxTries;
    if (status.error_code() == grpc::StatusCode::NOT_FOUND && !name_.empty()) {
      name_.clear();  // it has started again, and is to run the action from the beginning
      return true;
    }
    return MayWorkLater(status) && connection_.env().Now() - lost_at_ < connection_.options().timeout;
  }

  grpc::Status FollowOnce(grpc::ClientContext& context, const exec::BlobDigest& action) {
    grpc::CompletionQueue events;
    const auto stream = name_.empty() ? Start(context, events, action) : PickUp(context, events);
    bool goes_on = HasWorked(events, context);
    while (goes_on && !response_) {
      longrunning::Operation operation;
      stream->Read(&operation, nullptr);
      goes_on = HasWorked(events, context);
      if (goes_on) Hear(operation);
    }
    if (response_) context.TryCancel();  // nothing that follows matters
    grpc::Status status;
    stream->Finish(&status, nullptr);
    HasWorked(events, context);
    if (response_) return ToGrpc(response_->status());
    if (failure_) {
      ++failures_;
      return *std::exchange(failure_, std::nullopt);
    }
    return status.ok() ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "its answer broke off") : status;
  }

  // Awaits the operation of the call that has begun. Ends the call if the action has waited for too long.
  bool HasWorked(grpc::CompletionQueue& events, grpc::ClientContext& context) {
    void* tag = nullptr;
    bool worked = false;
    const gpr_timespec end = waits_ && !has_run_ ? queue_end_ : gpr_inf_future(GPR_CLOCK_MONOTONIC);
    if (events.AsyncNext(&tag, &worked, end) == grpc::CompletionQueue::TIMEOUT) {
      late_ = true;
      context.TryCancel();
      events.Next(&tag, &worked);
    }
    return worked;
  }

  using Stream = std::unique_ptr<grpc::ClientAsyncReader<longrunning::Operation>>;

  Stream Start(grpc::ClientContext& context, grpc::CompletionQueue& events, const exec::BlobDigest& action) {
    reapi::ExecuteRequest request;
    request.set_instance_name(connection_.options().instance);
    request.set_skip_cache_lookup(options_.skip_cache_lookup);
    *request.mutable_action_digest() = exec::ToReapi(action);
    return connection_.execution().AsyncExecute(&context, request, &events, nullptr);
  }

  Stream PickUp(grpc::ClientContext& context, grpc::CompletionQueue& events) {
    reapi::WaitExecutionRequest request;
    request.set_name(name_);
    return connection_.execution().AsyncWaitExecution(&context, request, &events, nullptr);
  }

  void Hear(const longrunning::Operation& operation) {
    heard_ = was_taken_ = true;
    name_ = operation.name();
    if (!operation.done()) {
      TellStage(operation);
      return;
    }
    name_.clear();  // nothing is left to cancel or to pick up
    if (operation.has_error()) {
      failure_ = ToGrpc(operation.error());
    } else if (reapi::ExecuteResponse response; operation.response().UnpackTo(&response)) {
      if (IsFinal(response)) {
        response_ = std::move(response);
      } else {
        failure_ = ToGrpc(response.status());
      }
    } else {
      failure_ = grpc::Status(grpc::StatusCode::DATA_LOSS, "it ended an action without an answer");
    }
  }

  // Whether the command has run, or has run out of its time. Anything else is the engine's own failure.
  static bool IsFinal(const reapi::ExecuteResponse& response) {
    const auto code = static_cast<grpc::StatusCode>(response.status().code());
    return code == grpc::StatusCode::OK || code == grpc::StatusCode::DEADLINE_EXCEEDED;
  }

  // Some engines name no stage: then an action that the engine has taken is treated as running.
  void TellStage(const longrunning::Operation& operation) {
    reapi::ExecuteOperationMetadata metadata;
    operation.metadata().UnpackTo(&metadata);
    waits_ =
        metadata.stage() == reapi::ExecutionStage::QUEUED || metadata.stage() == reapi::ExecutionStage::CACHE_CHECK;
    has_run_ = has_run_ || !waits_;
    if (options_.on_stage) options_.on_stage(waits_ ? ExecutionStage::kQueued : ExecutionStage::kRunning);
  }

  Connection& connection_;
  const Limits limits_;
  const ExecuteOptions& options_;
  const gpr_timespec queue_end_;
  bool waits_ = false;  // the engine has said last that the action waits
  bool has_run_ = false;
  bool late_ = false;   // it has waited for too long
  std::string name_;    // of the operation; empty: none that could be picked up
  bool heard_ = false;  // something, in this try
  bool was_taken_ = false;
  MonotonicTime lost_at_;  // since when there is no stream
  int failures_ = 0;       // how often it has ended the action without running it to its end
  std::optional<reapi::ExecuteResponse> response_;
  std::optional<grpc::Status> failure_;  // of this try
};

absl::Status NotAResult(const UpstreamOptions& options, std::string_view why) {
  return MakeError(v1::ErrorDetail::INTERNAL,
                   StrCat("the engine at ", options.address, " sent a result that cannot be used: ", why));
}

std::optional<exec::BlobDigest> DigestIfAny(bool is_there, const reapi::Digest& message) {
  return is_there && message.size_bytes() > 0 ? exec::FromReapi(message) : std::nullopt;
}

absl::StatusOr<Execution> ToExecution(const UpstreamOptions& options, const reapi::ExecuteResponse& response) {
  Execution execution;
  execution.timed_out = response.status().code() != 0;
  execution.from_cache = response.cached_result();
  const reapi::ActionResult& result = response.result();
  execution.exit_code = result.exit_code();
  KERNIX_ASSIGN_OR_RETURN(execution.files, FilesOf(options, result));
  execution.stdout_text = result.stdout_raw();
  execution.stderr_text = result.stderr_raw();
  if (result.stdout_raw().empty())
    execution.stdout_digest = DigestIfAny(result.has_stdout_digest(), result.stdout_digest());
  if (result.stderr_raw().empty())
    execution.stderr_digest = DigestIfAny(result.has_stderr_digest(), result.stderr_digest());
  return execution;
}

std::string InWords(Duration time) {
  const bool is_even = time.count() % 1000 == 0;
  return is_even ? StrCat(time.count() / 1000, " s") : StrCat(time.count(), " ms");
}

// The step may be a short one: it can run elsewhere. The engine has answered, so the code is NOT_FOUND.
absl::Status NoWorker(const UpstreamOptions& engine, Duration waited) {
  return MakeError(
      v1::ErrorDetail::UNREACHABLE,
      StrCat("no worker of the engine at ", engine.address, " has taken the action within ", InWords(waited),
             ". Do workers run, and match upstream.platform? If they are busy, or take long to start, "
             "set a longer upstream.queue_timeout"),
      absl::StatusCode::kNotFound);
}

// It lacks a part of the action, or a worker for it.
absl::Status Refused(const UpstreamOptions& engine, const grpc::Status& status) {
  v1::ErrorDetail detail = GetErrorDetail(EngineError(status, engine, kAsked));
  detail.set_kind(v1::ErrorDetail::UNREACHABLE);
  detail.mutable_message()->append(". It lacks a part of the action, or a worker that matches upstream.platform.");
  return MakeError(std::move(detail));
}

}  // namespace

absl::StatusOr<std::vector<OutputFile>> FilesOf(const UpstreamOptions& options, const reapi::ActionResult& result) {
  std::vector<OutputFile> files;
  for (const auto& file : result.output_files()) {
    const std::optional<exec::BlobDigest> digest = exec::FromReapi(file.digest());
    if (!digest) return NotAResult(options, StrCat("'", file.path(), "' has no SHA-256 digest"));
    OutputFile& added = files.emplace_back(OutputFile{file.path(), *digest});
    // Other bytes count as none: a reader that needs the file asks for the blob, and learns more.
    if (!file.contents().empty() && exec::BlobDigestOf(file.contents()) == *digest) {
      added.content = exec::MakeContent(file.contents());
    }
  }
  return files;
}

bool IsNoWorker(const absl::Status& status) {
  return (absl::IsNotFound(status) || absl::IsFailedPrecondition(status)) &&
         KindOf(status) == v1::ErrorDetail::UNREACHABLE;
}

absl::StatusOr<Execution> Execute(Connection& connection, const Limits& limits, const exec::BlobDigest& action,
                                  const ExecuteOptions& options) {
  Running running(connection, limits, options);
  const grpc::Status status = running.Follow(action);
  if (running.response()) return ToExecution(connection.options(), *running.response());
  running.Abandon();
  if (limits.IsCancelled()) return MakeError(v1::ErrorDetail::CANCELLED, "cancelled: run an action");
  const bool is_late = status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
  if (running.has_waited_too_long()) return NoWorker(connection.options(), options.queue_limit);
  if (is_late && running.waits()) return NoWorker(connection.options(), options.time_limit);
  if (is_late && running.was_taken()) return Execution{.timed_out = true};
  if (status.error_code() == grpc::StatusCode::FAILED_PRECONDITION) return Refused(connection.options(), status);
  return EngineError(status, connection.options(), kAsked);
}

}  // namespace kernix::remote
