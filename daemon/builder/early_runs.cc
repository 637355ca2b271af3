// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/early_runs.h"

#include "daemon/exec/action_digest.h"

namespace kernix::build {

// One command. The executor, and whoever takes it, hold a reference.
class EarlyRuns::Run : public std::enable_shared_from_this<Run> {
 public:
  Run(Key key, const BuildStart& start) : key_(std::move(key)), start_(start) {}

  const Key& key() const { return key_; }
  const BuildStart& start() const { return start_; }

  void Begin(exec::Executor& executor, const exec::Action& action) {
    executor.Submit(
        action, key_.first, /*observer=*/nullptr, cancellation_,
        [self = shared_from_this()](absl::StatusOr<exec::ActionResult> result) { self->OnDone(std::move(result)); });
  }

  void Cancel() { cancellation_->Cancel(); }

  // `cancellation` (may be null) cancels the command from now on.
  void GiveTo(const exec::Action& action, exec::ActionObserver* observer, CancellationPtr cancellation,
              exec::ActionDone done) {
    if (observer != nullptr) observer->OnStarted(action);
    int on_cancel = 0;
    if (cancellation != nullptr) on_cancel = cancellation->OnCancel([own = cancellation_] { own->Cancel(); });
    auto deliver = [observer, cancellation, on_cancel,
                    done = std::move(done)](absl::StatusOr<exec::ActionResult> result) {
      if (cancellation != nullptr) cancellation->Remove(on_cancel);
      if (observer != nullptr && result.ok() && !result->output.empty()) observer->OnOutput(result->output);
      done(std::move(result));
    };
    std::optional<absl::StatusOr<exec::ActionResult>> result;
    {
      const MutexLock lock(mutex_);
      result = std::exchange(result_, std::nullopt);
      if (!result) deliver_ = std::move(deliver);
    }
    if (result) deliver(*std::move(result));
  }

 private:
  void OnDone(absl::StatusOr<exec::ActionResult> result) {
    exec::ActionDone deliver;
    {
      const MutexLock lock(mutex_);
      if (deliver_ == nullptr) {
        result_ = std::move(result);
        return;
      }
      deliver = std::move(deliver_);
    }
    deliver(std::move(result));
  }

  const Key key_;
  const BuildStart start_;
  const CancellationPtr cancellation_ = std::make_shared<Cancellation>();
  Mutex mutex_;
  exec::ActionDone deliver_ ABSL_GUARDED_BY(mutex_);                                  // once it is taken
  std::optional<absl::StatusOr<exec::ActionResult>> result_ ABSL_GUARDED_BY(mutex_);  // until it is taken
};

void EarlyRuns::Tickets::Begin(const exec::Action& action, UserId user, const BuildStart& start) {
  if (runs_.StartOf(action, user)) return;  // another load has begun it
  auto run = std::make_shared<Run>(KeyOf(action, user), start);
  begun_.push_back(run);
  run->Begin(runs_.executor_, action);
  const MutexLock lock(runs_.mutex_);
  runs_.waiting_.insert_or_assign(run->key(), run);  // last: only what has begun can be waited for
}

EarlyRuns::Tickets::~Tickets() {
  for (const std::shared_ptr<Run>& run : begun_) {
    {
      const MutexLock lock(runs_.mutex_);
      const auto waiting = runs_.waiting_.find(run->key());
      if (waiting == runs_.waiting_.end() || waiting->second != run) continue;
      runs_.waiting_.erase(waiting);
    }
    runs_.dropped_.Add();
    run->Cancel();
  }
}

EarlyRuns::Key EarlyRuns::KeyOf(exec::Action action, UserId user) {
  action.salt = Digest();
  return {user, exec::DigestOfAction(action).hash};
}

std::optional<BuildStart> EarlyRuns::StartOf(const exec::Action& action, UserId user) {
  const MutexLock lock(mutex_);
  if (waiting_.empty()) return std::nullopt;
  const auto waiting = waiting_.find(KeyOf(action, user));
  if (waiting == waiting_.end()) return std::nullopt;
  return waiting->second->start();
}

std::shared_ptr<EarlyRuns::Run> EarlyRuns::Take(const exec::Action& action, UserId user) {
  const MutexLock lock(mutex_);
  if (waiting_.empty()) return nullptr;
  const auto waiting = waiting_.find(KeyOf(action, user));
  if (waiting == waiting_.end()) return nullptr;
  const std::shared_ptr<Run> run = std::move(waiting->second);
  waiting_.erase(waiting);
  return run;
}

void EarlyRuns::Submit(const exec::Action& action, UserId user, exec::ActionObserver* observer,
                       CancellationPtr cancellation, exec::ActionDone done) {
  const std::shared_ptr<Run> run = Take(action, user);
  if (run == nullptr) return executor_.Submit(action, user, observer, std::move(cancellation), std::move(done));
  taken_.Add();
  run->GiveTo(action, observer, std::move(cancellation), std::move(done));
}

void EarlyRuns::Register(MetricsRegistry& registry) const {
  constexpr char kName[] = "kernix_early_compiles_total";
  constexpr char kHelp[] = "Compiles that ran while their compiler was identified: taken by their load, or dropped.";
  registry.AddCounter(kName, kHelp, taken_, {{"end", "taken"}});
  registry.AddCounter(kName, kHelp, dropped_, {{"end", "dropped"}});
}

}  // namespace kernix::build
