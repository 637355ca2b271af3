// SPDX-License-Identifier: Apache-2.0
#include "daemon/remote/connection.h"

#include <grpc/support/time.h>

#include <algorithm>
#include <utility>

#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "daemon/remote/channel.h"
#include "daemon/remote/engine_address.h"
#include "daemon/remote/engine_error.h"
#include "daemon/remote/retry.h"

namespace kernix::remote {
namespace {

// Ends a call when the caller is cancelled.
class EndsWith {
 public:
  EndsWith(Cancellation* cancellation, grpc::ClientContext& context) : cancellation_(cancellation) {
    if (cancellation_ != nullptr) id_ = cancellation_->OnCancel([&context] { context.TryCancel(); });
  }
  ~EndsWith() {
    if (cancellation_ != nullptr) cancellation_->Remove(id_);
  }
  EndsWith(const EndsWith&) = delete;
  EndsWith& operator=(const EndsWith&) = delete;

 private:
  Cancellation* const cancellation_;
  int id_ = 0;
};

Duration TimeLeft(Env& env, const Limits& limits) {
  return std::max(Duration(0), std::chrono::duration_cast<Duration>(limits.deadline - env.Now()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(Env& env, UpstreamOptions options) {
  KERNIX_ASSIGN_OR_RETURN(const EngineAddress address, ParseEngineAddress(options.address));
  KERNIX_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel, MakeChannel(env, options, address));
  KERNIX_ASSIGN_OR_RETURN(TokenHeader header, ParseTokenHeader(options.token_header));
  std::unique_ptr<Connection> connection(new Connection(env, std::move(options), std::move(header), channel));
  if (connection->token_ != nullptr) KERNIX_RETURN_IF_ERROR(connection->token_->Value().status());
  return connection;
}

Connection::Connection(Env& env, UpstreamOptions options, TokenHeader header,
                       const std::shared_ptr<grpc::Channel>& channel)
    : env_(env),
      options_(std::move(options)),
      token_(options_.token_file.empty() ? nullptr
                                         : std::make_unique<TokenFile>(env, options_.token_file, std::move(header))),
      action_cache_(reapi::ActionCache::NewStub(channel)),
      storage_(reapi::ContentAddressableStorage::NewStub(channel)),
      capabilities_(reapi::Capabilities::NewStub(channel)),
      streams_(google::bytestream::ByteStream::NewStub(channel)),
      execution_(reapi::Execution::NewStub(channel)),
      operations_(google::longrunning::Operations::NewStub(channel)) {}

absl::Status Connection::Call(const Limits& limits, std::string_view asked, const Attempt& attempt) {
  for (int tries = 1;; ++tries) {
    // Half of the time: a try that hangs leaves time for another.
    const Duration left = TimeLeft(env_, limits);
    const grpc::Status status = Try(limits, tries == kMaxTries ? left : left / 2, attempt);
    if (status.ok()) return absl::OkStatus();
    if (limits.IsCancelled()) return MakeError(v1::ErrorDetail::CANCELLED, StrCat("cancelled: ", asked));
    if (!MayWorkLater(status) || tries == kMaxTries || !WaitToRetry(limits, tries, status)) {
      if (limits.IsCancelled()) return MakeError(v1::ErrorDetail::CANCELLED, StrCat("cancelled: ", asked));
      return EngineError(status, options_, tries == 1 ? std::string(asked) : StrCat(asked, " in ", tries, " tries"));
    }
  }
}

grpc::Status Connection::TryOnce(const Limits& limits, const Attempt& attempt) {
  return Try(limits, TimeLeft(env_, limits), attempt);
}

grpc::Status Connection::Try(const Limits& limits, Duration time, const Attempt& attempt) {
  if (time <= Duration(0)) return grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, "no time was left to ask");
  grpc::ClientContext context;
  context.set_deadline(gpr_time_from_millis(time.count(), GPR_TIMESPAN));
  if (token_ != nullptr) {
    const absl::StatusOr<std::string> value = token_->Value();
    if (!value.ok())
      return grpc::Status(grpc::StatusCode::UNAUTHENTICATED, std::string(ToStd(value.status().message())));
    context.AddMetadata(token_->header_name(), *value);
  }
  const EndsWith ends(limits.cancellation, context);
  return attempt(context);
}

bool Connection::WaitToRetry(const Limits& limits, int tries, const grpc::Status& status) {
  const Duration pause = std::max(PauseBeforeRetry(tries), AskedPause(status).value_or(Duration(0)));
  if (pause >= TimeLeft(env_, limits)) return false;
  counters_.retries.Add();
  return Pause(pause, limits.cancellation);
}

}  // namespace kernix::remote
