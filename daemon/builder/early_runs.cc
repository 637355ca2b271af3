// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/early_runs.h"

#include <utility>

#include "daemon/exec/action_digest.h"

namespace kernix::build {
namespace {

Digest WithoutSalt(exec::Action action) {
  action.salt = Digest();
  return exec::DigestOfAction(action).hash;
}

}  // namespace

// One command. The executor holds a reference until it has ended. Tells its step everything from the beginning once it
// has one: under the lock, so that it does so in order.
class EarlyRuns::Run final : public exec::ActionObserver, public std::enable_shared_from_this<Run> {
 public:
  explicit Run(Env& env) : env_(env), ready_(env.Now()) {}

  void Begin(exec::Executor& executor, const exec::Action& action, exec::AskersPtr askers) {
    executor.Submit(
        action, std::move(askers), this, cancellation_,
        [self = shared_from_this()](absl::StatusOr<exec::ActionResult> result) { self->OnDone(std::move(result)); });
  }

  void Cancel() { cancellation_->Cancel(); }

  void OnQueued(int actions_ahead) override {
    const MutexLock lock(mutex_);
    if (step_ != nullptr) step_->OnQueued(actions_ahead);
  }

  void OnStarted(const exec::Action& action) override {
    const MutexLock lock(mutex_);
    started_ = env_.Now();
    if (step_ != nullptr) step_->OnStarted(action, *started_);
  }

  void OnOutput(std::string_view text) override {
    const MutexLock lock(mutex_);
    step_ != nullptr ? step_->OnOutput(text) : (void)output_.append(text);
  }

  void GiveTo(const exec::Action& action, TimedStep& step, const CancellationPtr& cancellation,
              const exec::ActionDone& done) {
    std::optional<absl::StatusOr<exec::ActionResult>> result;
    try {
      if (cancellation != nullptr) {
        const int id = cancellation->OnCancel([own = cancellation_] { own->Cancel(); });
        end_ = [cancellation, id, done](absl::StatusOr<exec::ActionResult> ended) {
          cancellation->Remove(id);
          done(std::move(ended));
        };
      } else {
        end_ = done;
      }
      const MutexLock lock(mutex_);
      step.ReadySince(ready_);
      if (started_) step.OnStarted(action, *started_);
      if (!output_.empty()) step.OnOutput(output_);
      step_ = &step;
      result = std::exchange(result_, std::nullopt);
    } catch (...) {  // nobody would take it
      Cancel();
      throw;
    }
    if (result) end_(*std::move(result));
  }

 private:
  void OnDone(absl::StatusOr<exec::ActionResult> result) {
    {
      const MutexLock lock(mutex_);
      if (step_ == nullptr) {
        result_ = std::move(result);
        return;
      }
    }
    end_(std::move(result));
  }

  Env& env_;
  const MonotonicTime ready_;
  const CancellationPtr cancellation_ = std::make_shared<Cancellation>();
  exec::ActionDone end_;  // set before `step_`
  Mutex mutex_;
  TimedStep* step_ ABSL_GUARDED_BY(mutex_) = nullptr;  // lives as long as `end_`
  std::optional<MonotonicTime> started_ ABSL_GUARDED_BY(mutex_);
  std::string output_ ABSL_GUARDED_BY(mutex_);  // until there is a step
  std::optional<absl::StatusOr<exec::ActionResult>> result_ ABSL_GUARDED_BY(mutex_);
};

void EarlyRunCounts::Register(MetricsRegistry& registry) const {
  constexpr char kName[] = "kernix_early_compiles_total";
  constexpr char kHelp[] = "Compiles that ran while their compiler was identified: taken by their load, or dropped.";
  registry.AddCounter(kName, kHelp, taken, {{"end", "taken"}});
  registry.AddCounter(kName, kHelp, dropped, {{"end", "dropped"}});
}

EarlyRuns::EarlyRuns(Env& env, exec::Executor& executor, UserId user, std::shared_ptr<EarlyRunCounts> counts)
    : env_(env),
      executor_(executor),
      askers_(exec::OneAsker(user)),
      counts_(std::move(counts)),
      start_{env.Now(), env.UnixMillis()} {}

EarlyRuns::~EarlyRuns() {
  const MutexLock lock(mutex_);
  for (const auto& [action, run] : waiting_) {
    counts_->dropped.Add();
    run->Cancel();
  }
}

void EarlyRuns::Begin(const exec::Action& action) {
  const auto run = std::make_shared<Run>(env_);
  const MutexLock lock(mutex_);
  const auto [waiting, is_new] = waiting_.try_emplace(WithoutSalt(action), run);
  if (!is_new) return;
  try {
    run->Begin(executor_, action, askers_);
    any_ = true;
  } catch (...) {  // nobody must wait for what does not run
    waiting_.erase(waiting);
    throw;
  }
}

bool EarlyRuns::any() const {
  const MutexLock lock(mutex_);
  return any_;
}

bool EarlyRuns::GiveTo(const exec::Action& action, TimedStep& step, const CancellationPtr& cancellation,
                       const exec::ActionDone& done) {
  std::shared_ptr<Run> run;
  {
    const MutexLock lock(mutex_);
    if (waiting_.empty()) return false;
    const auto waiting = waiting_.find(WithoutSalt(action));
    if (waiting == waiting_.end()) return false;
    run = std::move(waiting->second);
    waiting_.erase(waiting);
  }
  counts_->taken.Add();
  run->GiveTo(action, step, cancellation, done);
  return true;
}

}  // namespace kernix::build
