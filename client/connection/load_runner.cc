// SPDX-License-Identifier: Apache-2.0
#include "client/connection/load_runner.h"

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "client/connection/busy_pause.h"
#include "client/connection/caller.h"
#include "client/connection/load_conversation.h"
#include "common/base/error.h"
#include "common/base/strings.h"
#include "common/wire/call_status.h"

namespace kernix {
namespace {

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
        caller_(callbacks.cancelled) {
    const v1::LoadRequest& load = request_.request();
    if (load.language() == v1::LANGUAGE_CPP) endpoint_.first_compiler = load.toolchain().host_compiler();
  }

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
    if (outcome.daemon_lost) {
      connector_.Distrust();
      return !std::exchange(lost_before_, true);
    }
    if (TakesPause(outcome.result.status())) return true;
    return endpoint_.kind == EndpointKind::kService &&
           KindOf(outcome.result.status()) == v1::ErrorDetail::NOT_REGISTERED_TOOLCHAIN &&
           FallBack(ToStd(outcome.result.status().message()));
  }

  // Whether there is one to make, because this user has too much under way.
  bool TakesPause(const absl::Status& status) {
    pause_ = BusyPause(status, ++pauses_);
    if (pause_.count() == 0) return false;
    v1::Progress queued;
    queued.set_state(v1::Progress::QUEUED);
    if (pauses_ == 1 && callbacks_.progress) callbacks_.progress(ProgressText(queued));
    constexpr int kPausesToMention = 6;  // after some five seconds
    if (pauses_ == kPausesToMention) Warn(StrCat("this load waits: ", status.message()));
    return true;
  }

  bool FallBack(std::string_view reason) {
    return connector_.FallBackToOwn(endpoint_, reason, [this](std::string_view text) { Warn(text); }).ok();
  }

  void Warn(std::string_view text) {
    if (callbacks_.warning && !text.empty()) callbacks_.warning(text);
  }

  Connector& connector_;
  Endpoint endpoint_;
  const v1::LoadClientMessage& request_;
  const BlobProvider& blobs_;
  const LoadCallbacks& callbacks_;
  Caller caller_;
  bool lost_before_ = false;
  int pauses_ = 0;
  std::chrono::milliseconds pause_{0};  // before the next attempt
};

}  // namespace

absl::StatusOr<v1::LoadResult> RunLoad(Connector& connector, Endpoint endpoint, const v1::LoadRequest& request,
                                       const BlobProvider& blobs, const LoadCallbacks& callbacks) {
  v1::LoadClientMessage message;
  *message.mutable_request() = request;
  return Attempts(connector, std::move(endpoint), message, blobs, callbacks).Run();
}

}  // namespace kernix
