// SPDX-License-Identifier: Apache-2.0
#include "client/connection/load_runner.h"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "client/connection/busy_pause.h"
#include "client/connection/grpc_session.h"
#include "client/connection/load_attendant.h"
#include "client/connection/load_conversation.h"
#include "client/connection/load_mailbox.h"
#include "client/connection/signals_blocked.h"
#include "common/base/cancellation.h"
#include "common/base/error.h"
#include "common/base/strings.h"
#include "common/wire/grpc_status.h"

namespace kernix {
namespace {

// Makes attempts until one counts. An attempt does not count if a fork interrupted it, its daemon died, or the daemon
// has too much to do for this user. After Finish(), uses only its own objects and the mailbox.
class Attempts {
 public:
  Attempts(Connector& connector, Endpoint endpoint, const v1::LoadClientMessage& request, LoadMailbox& mailbox)
      : connector_(connector), endpoint_(std::move(endpoint)), request_(request), mailbox_(mailbox) {
    const v1::LoadRequest& load = request_.request();
    if (load.language() == v1::LANGUAGE_CPP) endpoint_.first_compiler = load.toolchain().host_compiler();
  }

  void Run() {
    while (!AttemptCounts()) Pause(std::exchange(pause_, {}), &mailbox_.cancellation());  // where forks can happen
  }

 private:
  // True: the load has ended.
  bool AttemptCounts() {
    ForkGate::Section section;
    // Both outlive Finish(): ending gRPC takes milliseconds, in which the caller can already open the artifact.
    const GrpcUse grpc;
    Session session;
    const int cancel_id = mailbox_.cancellation().OnCancel([&section] { section.Interrupt(); });
    ConversationOutcome outcome = Attempt(section, session);
    mailbox_.cancellation().Remove(cancel_id);
    if (!mailbox_.cancellation().cancelled() && ShallRepeat(outcome, section)) return false;
    // A private daemon must be gone, and the store free, before the caller can load again.
    if (session.daemon != nullptr) session.grpc.reset();
    session.daemon.reset();
    mailbox_.Finish(std::move(outcome.result));
    return true;
  }

  ConversationOutcome Attempt(ForkGate::Section& section, Session& session) {
    absl::StatusOr<Session> opened = connector_.Open(endpoint_, Connector::Need::kFitOrOneshot, section,
                                                     [this](std::string_view text) { Warn(text); });
    if (!opened.ok()) return {opened.status(), DaemonWasLost(opened.status())};
    session = *std::move(opened);
    return ConverseAboutLoad(session.grpc->stub(), session.peer, request_, mailbox_, section);
  }

  bool ShallRepeat(const ConversationOutcome& outcome, const ForkGate::Section& section) {
    if (outcome.result.ok()) return false;
    if (section.interrupted()) return !ForkGate::Ending();
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
    v1::Progress progress;
    progress.set_state(v1::Progress::QUEUED);
    mailbox_.Push(std::move(progress));
    constexpr int kPausesToMention = 6;  // after some five seconds
    if (pauses_ == kPausesToMention) Warn(StrCat("this load waits: ", status.message()));
    return true;
  }

  bool FallBack(std::string_view reason) {
    return connector_.FallBackToOwn(endpoint_, reason, [this](std::string_view text) { Warn(text); }).ok();
  }

  void Warn(std::string_view text) { mailbox_.Push(WarningEvent{std::string(text)}); }

  Connector& connector_;
  Endpoint endpoint_;
  const v1::LoadClientMessage& request_;
  LoadMailbox& mailbox_;
  bool lost_before_ = false;
  int pauses_ = 0;
  std::chrono::milliseconds pause_{0};  // before the next attempt
};

// The thread blocks all signals, so that handlers of the application run in the application's threads. It is detached,
// because a forked child could not join it; Finish() tells when it no longer uses shared objects.
bool StartThread(std::function<void()> body) {
  const SignalsBlocked blocked;
  try {
    std::thread(std::move(body)).detach();
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

}  // namespace

absl::StatusOr<v1::LoadResult> RunLoad(Connector& connector, const Endpoint& endpoint, const v1::LoadRequest& request,
                                       const BlobProvider& blobs, const LoadCallbacks& callbacks) {
  v1::LoadClientMessage message;
  *message.mutable_request() = request;
  while (true) {
    // Shared with the thread, which may still be returning from Finish() after this function has returned.
    const auto mailbox = std::make_shared<LoadMailbox>();
    if (!StartThread(
            [&connector, endpoint, &message, mailbox] { Attempts(connector, endpoint, message, *mailbox).Run(); })) {
      return MakeError(v1::ErrorDetail::RESOURCE, "no thread can be started for the load: a limit is reached");
    }
    if (auto result = AttendLoad(*mailbox, blobs, callbacks)) return *std::move(result);
  }
}

}  // namespace kernix
