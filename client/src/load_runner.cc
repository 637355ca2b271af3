// SPDX-License-Identifier: Apache-2.0
#include "client/src/load_runner.h"

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <variant>

#include "client/src/load_conversation.h"
#include "client/src/load_mailbox.h"
#include "client/src/status_from_grpc.h"
#include "daemon/base/error.h"
#include "daemon/base/strings.h"

namespace kernix {
namespace {

// How often LoadCallbacks::cancelled is asked.
constexpr std::chrono::milliseconds kPatience{50};

// --- The gRPC thread -------------------------------------------------------------------------------------------------

// Makes attempts until one counts. Those that a fork interrupted do not, and one whose daemon died does not. After
// Finish() it uses nothing but what is its own and the mailbox.
class Attempts {
 public:
  Attempts(Connector& connector, Endpoint endpoint, const v1::LoadClientMessage& request, LoadMailbox& mailbox)
      : connector_(connector), endpoint_(std::move(endpoint)), request_(request), mailbox_(mailbox) {}

  void Run() {
    while (true) {
      ForkGate::Section section;
      // Outlives Finish(): to end gRPC takes milliseconds, which the caller can use to open what it got.
      Session session;
      const int cancel_id = mailbox_.cancellation().OnCancel([&section] { section.Interrupt(); });
      ConversationOutcome outcome = Attempt(section, session);
      mailbox_.cancellation().Remove(cancel_id);
      if (!mailbox_.cancellation().cancelled() && ShallRepeat(outcome, section)) continue;
      // A private daemon has to be gone, and the store free, before the caller can load again.
      if (session.daemon != nullptr) session.grpc.reset();
      session.daemon.reset();
      mailbox_.Finish(std::move(outcome.result));
      return;
    }
  }

 private:
  ConversationOutcome Attempt(ForkGate::Section& section, Session& session) {
    absl::StatusOr<Session> opened = connector_.Open(endpoint_, Connector::Need::kFitOrOneshot, section,
                                                     [this](std::string_view text) { Warn(text); });
    if (!opened.ok()) return {opened.status(), DaemonWasLost(opened.status())};
    session = *std::move(opened);
    return ConverseAboutLoad(session.grpc->stub(), session.peer, request_, mailbox_, section);
  }

  bool ShallRepeat(const ConversationOutcome& outcome, const ForkGate::Section& section) {
    if (outcome.result.ok()) return false;
    if (section.interrupted()) return true;
    if (outcome.daemon_lost) {
      connector_.Distrust();
      return !std::exchange(lost_before_, true);
    }
    return endpoint_.kind == EndpointKind::kService &&
           KindOf(outcome.result.status()) == v1::ErrorDetail::NOT_REGISTERED_TOOLCHAIN &&
           FallBack(ToStd(outcome.result.status().message()));
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
};

// Without a signal that it could take: handlers of the application run in its own threads. Detached, since a forked
// child could not join it; Finish() tells when it is done with what it shares.
bool StartThread(std::function<void()> body) {
  sigset_t all;
  sigset_t saved;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &saved);
  bool started = true;
  try {
    std::thread(std::move(body)).detach();
  } catch (const std::system_error&) {
    started = false;
  }
  pthread_sigmask(SIG_SETMASK, &saved, nullptr);
  return started;
}

// --- The loading thread ----------------------------------------------------------------------------------------------

template <typename... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};
template <typename... Handlers>
Overloaded(Handlers...) -> Overloaded<Handlers...>;

// Runs the callbacks.
class NewsDesk {
 public:
  NewsDesk(LoadMailbox& mailbox, const BlobProvider& blobs, const LoadCallbacks& callbacks)
      : mailbox_(mailbox), blobs_(blobs), callbacks_(callbacks) {}

  void Deliver(LoadNews news) {
    std::visit(Overloaded{[&](const WarningEvent& event) { Tell(callbacks_.warning, event.text); },
                          [&](const v1::Progress& progress) { TellProgress(progress); },
                          [&](const v1::Output& output) { TellOutput(output); },
                          [&](const BlobWanted& wanted) { mailbox_.GiveBlob(wanted.digest, blobs_(wanted.digest)); }},
               std::move(news));
  }

  bool CallerGaveUp() const { return callbacks_.cancelled && callbacks_.cancelled(); }

 private:
  static void Tell(const std::function<void(std::string_view)>& callback, std::string_view text) {
    if (callback && !text.empty()) callback(text);
  }

  void TellProgress(const v1::Progress& progress) {
    std::string text = ProgressText(progress);
    if (text == last_progress_) return;
    last_progress_ = std::move(text);
    Tell(callbacks_.progress, last_progress_);
  }

  void TellOutput(const v1::Output& output) {
    if (!output.command().empty()) Tell(callbacks_.output, StrCat(output.command(), "\n"));
    Tell(callbacks_.output, output.text());
  }

  LoadMailbox& mailbox_;
  const BlobProvider& blobs_;
  const LoadCallbacks& callbacks_;
  std::string last_progress_;
};

// Whatever way the loading thread leaves, also by an exception of a callback: the gRPC thread uses things that it owns.
class EndOfThread {
 public:
  explicit EndOfThread(LoadMailbox& mailbox) : mailbox_(mailbox) {}
  ~EndOfThread() {
    if (generation_ != ForkGate::Generation()) return;  // a forked child has no such thread
    mailbox_.cancellation().Cancel();
    mailbox_.AwaitFinish();
  }
  EndOfThread(const EndOfThread&) = delete;
  EndOfThread& operator=(const EndOfThread&) = delete;

 private:
  LoadMailbox& mailbox_;
  const uint64_t generation_ = ForkGate::Generation();
};

absl::Status CancelledByCaller() { return MakeError(v1::ErrorDetail::CANCELLED, "the load was cancelled"); }

// Nullopt when a callback forked and this is the child: the other thread is not here.
std::optional<absl::StatusOr<v1::LoadResult>> Attend(LoadMailbox& mailbox, NewsDesk& desk) {
  const uint64_t generation = ForkGate::Generation();
  const EndOfThread end(mailbox);
  while (!mailbox.finished()) {
    if (std::optional<LoadNews> news = mailbox.Next(kPatience)) {
      desk.Deliver(*std::move(news));
    } else if (!mailbox.finished() && desk.CallerGaveUp()) {
      return CancelledByCaller();
    }
    if (generation != ForkGate::Generation()) return std::nullopt;
  }
  return mailbox.TakeResult();
}

}  // namespace

std::string ProgressText(const v1::Progress& progress) {
  if (progress.state() == v1::Progress::QUEUED) {
    return progress.queue_position() == 0 ? "queued" : StrCat("queued (", progress.queue_position(), " ahead)");
  }
  if (progress.steps_total() == 0) return progress.step();
  return StrCat(progress.step(), " (", progress.steps_done(), "/", progress.steps_total(), ")");
}

absl::StatusOr<v1::LoadResult> RunLoad(Connector& connector, const Endpoint& endpoint, const v1::LoadRequest& request,
                                       const BlobProvider& blobs, const LoadCallbacks& callbacks) {
  v1::LoadClientMessage message;
  *message.mutable_request() = request;
  while (true) {
    // Shared with the thread, which may return from Finish() when we are gone.
    const auto mailbox = std::make_shared<LoadMailbox>();
    if (!StartThread(
            [&connector, endpoint, &message, mailbox] { Attempts(connector, endpoint, message, *mailbox).Run(); })) {
      return MakeError(v1::ErrorDetail::RESOURCE, "no thread can be started for the load: a limit is reached");
    }
    NewsDesk desk(*mailbox, blobs, callbacks);
    if (auto result = Attend(*mailbox, desk)) return *std::move(result);
  }
}

}  // namespace kernix
