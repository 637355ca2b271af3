// SPDX-License-Identifier: Apache-2.0
#include "client/connection/load_attendant.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <string_view>
#include <utility>
#include <variant>

#include "client/connection/fork_gate.h"
#include "common/base/error.h"
#include "common/base/strings.h"

namespace kernix {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// How often LoadCallbacks::cancelled is called.
constexpr milliseconds kPatience{50};

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

  // How long until the caller must be asked whether it still waits.
  milliseconds Patience() const {
    return std::max(milliseconds(0), duration_cast<milliseconds>(ask_at_ - steady_clock::now()) + milliseconds(1));
  }

  bool CallerGaveUp() {
    const auto now = steady_clock::now();
    if (now < ask_at_) return false;
    ask_at_ = now + kPatience;
    return callbacks_.cancelled && callbacks_.cancelled();
  }

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
  steady_clock::time_point ask_at_ = steady_clock::now() + kPatience;
};

// However the loading thread leaves, even by an exception of a callback, the gRPC thread must be done first, because it
// uses objects that the loading thread owns.
class EndOfThread {
 public:
  explicit EndOfThread(LoadMailbox& mailbox) : mailbox_(mailbox) {}
  ~EndOfThread() {
    if (generation_ != ForkGate::Generation()) return;  // a forked child does not have that thread
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

}  // namespace

std::optional<absl::StatusOr<v1::LoadResult>> AttendLoad(LoadMailbox& mailbox, const BlobProvider& blobs,
                                                         const LoadCallbacks& callbacks) {
  NewsDesk desk(mailbox, blobs, callbacks);
  const uint64_t generation = ForkGate::Generation();
  const EndOfThread end(mailbox);
  while (!mailbox.finished()) {
    if (std::optional<LoadNews> news = mailbox.Next(desk.Patience())) desk.Deliver(*std::move(news));
    if (generation != ForkGate::Generation()) return std::nullopt;
    if (!mailbox.finished() && desk.CallerGaveUp()) return CancelledByCaller();
    if (generation != ForkGate::Generation()) return std::nullopt;
  }
  return mailbox.TakeResult();
}

std::string ProgressText(const v1::Progress& progress) {
  if (progress.state() == v1::Progress::QUEUED) {
    return progress.queue_position() == 0 ? "queued" : StrCat("queued (", progress.queue_position(), " ahead)");
  }
  if (progress.steps_total() == 0) return progress.step();
  return StrCat(progress.step(), " (", progress.steps_done(), "/", progress.steps_total(), ")");
}

}  // namespace kernix
