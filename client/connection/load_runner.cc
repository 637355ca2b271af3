// SPDX-License-Identifier: Apache-2.0
#include "client/connection/load_runner.h"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "client/connection/grpc_call.h"
#include "common/base/error.h"
#include "common/base/strings.h"
#include "common/wire/call_status.h"

namespace kernix {

namespace {

// gRPC refuses messages over 4 MiB unless told otherwise.
constexpr size_t kChunkBytes = 1 << 20;

void Tell(const std::function<void(std::string_view)>& callback, std::string_view text) {
  if (callback && !text.empty()) callback(text);
}

// The text of LoadCallbacks::progress.
std::string ProgressText(const v1::Progress& progress) {
  if (progress.state() == v1::Progress::QUEUED) {
    return progress.queue_position() == 0 ? "queued" : StrCat("queued (", progress.queue_position(), " ahead)");
  }
  if (progress.steps_total() == 0) return progress.step();
  return StrCat(progress.step(), " (", progress.steps_done(), "/", progress.steps_total(), ")");
}

class Conversation {
 public:
  Conversation(Http2Connection& connection, const BlobProvider& blobs, const LoadCallbacks& callbacks, Caller& caller)
      : call_(connection, "Load", std::nullopt, caller), blobs_(blobs), callbacks_(callbacks), caller_(caller) {}

  // Runs until the daemon ends the call, whose status also shows whether a write failed.
  const CallStatus& Run(const v1::LoadClientMessage& request) {
    call_.Write(request, /*last=*/false);
    v1::LoadEvent event;
    while (call_.Read(event)) {
      Handle(event);
      // Asked here, too, since there may always be news to read.
      if (!answer_ && caller_.GaveUp()) call_.Cancel();
    }
    return call_.status();
  }

  // The result so far: the daemon's answer, or our own reason to stop. Nullopt if there is neither.
  std::optional<absl::StatusOr<v1::LoadResult>>& answer() { return answer_; }

 private:
  void Handle(v1::LoadEvent& event) {
    switch (event.event_case()) {
      case v1::LoadEvent::kNeedBlobs:
        SendBlobs(event.need_blobs());
        break;
      case v1::LoadEvent::kProgress:
        TellProgress(event.progress());
        break;
      case v1::LoadEvent::kOutput:
        if (!event.output().command().empty()) Tell(callbacks_.output, StrCat(event.output().command(), "\n"));
        Tell(callbacks_.output, event.output().text());
        break;
      case v1::LoadEvent::kResult:
        answer_ = std::move(*event.mutable_result());
        break;
      case v1::LoadEvent::kFailure:
        answer_ = MakeError(std::move(*event.mutable_failure()));
        break;
      case v1::LoadEvent::EVENT_NOT_SET:
        break;  // from a newer daemon; safe to ignore
    }
  }

  void TellProgress(const v1::Progress& progress) {
    std::string text = ProgressText(progress);
    if (text == last_progress_) return;
    last_progress_ = std::move(text);
    Tell(callbacks_.progress, last_progress_);
  }

  void SendBlobs(const v1::NeedBlobs& need) {
    for (const std::string& raw : need.digest()) {
      const absl::StatusOr<Digest> digest = Digest::FromRaw(raw);
      if (!digest.ok()) return Fail(digest.status());
      const absl::StatusOr<std::string> content = blobs_(*digest);
      if (!content.ok()) return Fail(content.status());
      if (!SendBlob(raw, *content)) return;
    }
  }

  void Fail(const absl::Status& status) {
    answer_ = status;
    call_.Cancel();
  }

  bool SendBlob(const std::string& digest, const std::string& content) {
    size_t sent = 0;
    do {
      v1::LoadClientMessage message;
      v1::Blob& blob = *message.mutable_blob();
      blob.set_digest(digest);
      blob.set_chunk(content.substr(sent, kChunkBytes));
      sent += blob.chunk().size();
      blob.set_last(sent == content.size());
      if (!call_.Write(message, /*last=*/false)) return false;
    } while (sent < content.size());
    return true;
  }

  GrpcCall call_;
  const BlobProvider& blobs_;
  const LoadCallbacks& callbacks_;
  Caller& caller_;
  std::string last_progress_;
  std::optional<absl::StatusOr<v1::LoadResult>> answer_;
};

// A stopping daemon accepts no new loads, and finally ends those that are still running.
bool DaemonStops(const absl::Status& answer) { return !answer.ok() && KindOf(answer) == v1::ErrorDetail::UNREACHABLE; }

absl::Status CancelledByCaller() { return MakeError(v1::ErrorDetail::CANCELLED, "the load was cancelled"); }

// Makes attempts until one counts. An attempt does not count if its daemon died, or has too much to do for this user,
// or if a callback has forked and this is the child.
class Attempts {
 public:
  Attempts(Connector& connector, Endpoint endpoint, const v1::LoadClientMessage& request, const BlobProvider& blobs,
           const LoadCallbacks& callbacks)
      : connector_(connector),
        endpoint_(std::move(endpoint)),
        request_(request),
        blobs_(blobs),
        callbacks_(callbacks),
        caller_(callbacks.cancelled) {}

  absl::StatusOr<v1::LoadResult> Run() {
    while (true) {
      ConversationOutcome outcome = Attempt();
      if (caller_.IsChild()) {
        caller_ = Caller(callbacks_.cancelled);
      } else if (!outcome.result.ok() && caller_.GaveUp()) {
        return CancelledByCaller();
      } else if (!ShallRepeat(outcome)) {
        return std::move(outcome.result);
      }
      caller_.Pause(std::exchange(pause_, {}));
    }
  }

 private:
  // After it, a private daemon is gone and the store free, so that the caller can load again.
  ConversationOutcome Attempt() {
    const absl::StatusOr<Session> session = connector_.Open(endpoint_, Connector::Need::kFitOrOneshot, caller_,
                                                            [this](std::string_view text) { Warn(text); });
    if (!session.ok()) return {session.status(), DaemonWasLost(session.status())};
    return ConverseAboutLoad(*session, request_, blobs_, callbacks_, caller_);
  }

  bool ShallRepeat(const ConversationOutcome& outcome) {
    if (outcome.result.ok()) return false;
    if (TakesPause(outcome)) return true;
    if (outcome.daemon_lost) {
      connector_.Distrust();
      if (!std::exchange(lost_before_, true)) return true;
      // A service that has ended each connection for minutes.
      return endpoint_.kind == EndpointKind::kService && RetryAfter(outcome.result.status()).count() > 0 &&
             FallBack(ToStd(outcome.result.status().message()));
    }
    return endpoint_.kind == EndpointKind::kService &&
           KindOf(outcome.result.status()) == v1::ErrorDetail::NOT_REGISTERED_TOOLCHAIN &&
           FallBack(ToStd(outcome.result.status().message()));
  }

  // Whether there is one to make, because this user has too much under way. A daemon that says nothing about it, but
  // ends each connection, may be none.
  bool TakesPause(const ConversationOutcome& outcome) {
    constexpr std::chrono::minutes kMostWithoutAWord{5};
    const absl::Status& status = outcome.result.status();
    pause_ = RetryAfter(status);
    if (pause_.count() == 0 || (outcome.daemon_lost && waited_ >= kMostWithoutAWord)) return false;
    const bool is_first = waited_.count() == 0;
    waited_ += pause_;
    v1::Progress queued;
    queued.set_state(v1::Progress::QUEUED);
    if (is_first && callbacks_.progress) callbacks_.progress(ProgressText(queued));
    constexpr std::chrono::milliseconds kMentioned{5'000};
    if (waited_ >= kMentioned && waited_ - pause_ < kMentioned) Warn(StrCat("this load waits: ", status.message()));
    return true;
  }

  bool FallBack(std::string_view reason) {
    return connector_.FallBackToOwn(endpoint_, reason, [this](std::string_view text) { Warn(text); }).ok();
  }

  void Warn(std::string_view text) { Tell(callbacks_.warning, text); }

  Connector& connector_;
  Endpoint endpoint_;
  const v1::LoadClientMessage& request_;
  const BlobProvider& blobs_;
  const LoadCallbacks& callbacks_;
  Caller caller_;
  bool lost_before_ = false;
  std::chrono::milliseconds pause_{0};   // before the next attempt
  std::chrono::milliseconds waited_{0};  // in all pauses
};

}  // namespace

ConversationOutcome ConverseAboutLoad(const Session& session, const v1::LoadClientMessage& request,
                                      const BlobProvider& blobs, const LoadCallbacks& callbacks, Caller& caller) {
  Conversation conversation(*session.connection, blobs, callbacks, caller);
  const CallStatus status = conversation.Run(request);
  if (conversation.answer()) {
    const bool stops = DaemonStops(conversation.answer()->status());
    return {*std::move(conversation.answer()), stops};
  }
  if (status.code == absl::StatusCode::kOk) {
    return {MakeError(v1::ErrorDetail::INTERNAL, StrCat(session.peer, " ended the load without a result")), false};
  }
  const absl::Status error = FromCallStatus(status, session.peer);
  return {error, DaemonWasLost(error)};
}

absl::StatusOr<v1::LoadResult> RunLoad(Connector& connector, Endpoint endpoint, const v1::LoadRequest& request,
                                       const BlobProvider& blobs, const LoadCallbacks& callbacks) {
  v1::LoadClientMessage message;
  *message.mutable_request() = request;
  return Attempts(connector, std::move(endpoint), message, blobs, callbacks).Run();
}

}  // namespace kernix
