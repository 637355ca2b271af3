// SPDX-License-Identifier: Apache-2.0
//
// Each action waits and runs in the thread of its caller. One more thread tells waiting actions their positions.
//
// Locks are taken in this order: the caller's Cancellation, a job's own or `mutex_`, its Askers. No foreign code
// (observers, the caller's Cancellation) is called with `mutex_` held.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "common/base/error.h"
#include "common/base/exceptions.h"
#include "common/base/mutex.h"
#include "common/base/strings.h"
#include "daemon/exec/executor.h"
#include "daemon/exec/fair_queue.h"
#include "daemon/exec/machine_limits.h"

namespace kernix::exec {
namespace {

// An action in the pool: queued, then running or cancelled.
class Job {
 public:
  // `action` and `observer`, which may be null, must outlive the job's turn.
  Job(const Action& action, AskersPtr askers, ActionObserver* observer)
      : action_(action), askers_(std::move(askers)), observer_(observer) {}

  const AskersPtr& askers() const { return askers_; }
  std::vector<QueuePosition> positions() const { return askers_->Positions(action_.rank, action_.batch_rank); }
  uint64_t memory() const { return action_.memory_estimate_bytes; }

  // Tells the observer how many actions are ahead, unless it already knows or the job has left the queue.
  void TellPosition(int ahead) {
    MutexLock lock(telling_);
    if (observer_ == nullptr || left_queue_ || ahead == told_) return;
    told_ = ahead;
    observer_->OnQueued(action_, ahead);
  }

  // After this, the observer gets no more OnQueued() calls.
  void LeaveQueue() {
    MutexLock lock(telling_);
    left_queue_ = true;
  }

  Cancellation cancellation;

  // Protected by the pool's mutex.
  CondVar changed;             // its turn has come, or it is cancelled
  std::optional<UserId> turn;  // in whose turn it runs
  MonotonicTime started;       // then

 private:
  const Action& action_;
  const AskersPtr askers_;
  ActionObserver* const observer_;

  Mutex telling_;
  bool left_queue_ ABSL_GUARDED_BY(telling_) = false;
  int told_ ABSL_GUARDED_BY(telling_) = -1;
};

using JobPtr = std::shared_ptr<Job>;

class PoolExecutor : public Executor {
 public:
  PoolExecutor(Env& env, ActionRunner run, int max_jobs, uint64_t memory_budget, Duration between_tellings)
      : env_(env),
        run_(std::move(run)),
        max_jobs_(max_jobs),
        memory_budget_(memory_budget),
        between_tellings_(between_tellings),
        admission_(max_jobs, memory_budget),
        teller_([this] { TellPositions(); }) {}

  ~PoolExecutor() override {
    for (const JobPtr& job : Stop()) job->cancellation.Cancel();
    {
      const MutexLock lock(mutex_);
      for (const JobPtr& job : queue_.InOrder()) job->changed.NotifyAll();
      while (!queue_.empty() || !running_.empty()) queue_changed_.Wait(mutex_);
    }
    teller_.join();
  }

  ActionEnd Run(const Action& action, const AskersPtr& askers, ActionObserver* observer,
                const CancellationPtr& cancellation) override {
    const auto job = std::make_shared<Job>(action, askers, observer);
    const ScopedOnCancel on_cancel(cancellation.get(), [&] {
      job->cancellation.Cancel();
      const MutexLock lock(mutex_);
      job->changed.NotifyAll();
    });
    const bool has_turn = WaitForTurn(job);
    job->LeaveQueue();
    if (!has_turn) {
      return MakeError(v1::ErrorDetail::CANCELLED, StrCat("step \"", action.step, "\" was cancelled"));
    }
    const absl::Cleanup release = [&] { Release(job); };
    // If an output does not fit into memory, only this job fails.
    return CatchExceptions("the job ended", [&] { return run_(action, observer, &job->cancellation); });
  }

  void AskersChanged(const Askers& askers) override {
    const MutexLock lock(mutex_);
    queue_.Move([&](const JobPtr& job) { return job->askers().get() == &askers; },
                [](const JobPtr& job) { return job->positions(); });
    AdmitNext();
  }

  ExecutorLoad load() const override {
    const MutexLock lock(mutex_);
    return {.running = admission_.running(), .queued = static_cast<int>(queue_.size()), .max_jobs = max_jobs_};
  }

 private:
  // All that there are. No more come.
  std::vector<JobPtr> Stop() {
    const MutexLock lock(mutex_);
    stopping_ = true;
    queue_changed_.NotifyAll();
    std::vector<JobPtr> jobs = queue_.InOrder();
    jobs.insert(jobs.end(), running_.begin(), running_.end());
    return jobs;
  }

  // Waits until the job's turn comes, which Release() ends. False if it is cancelled first: then it is in no queue.
  bool WaitForTurn(const JobPtr& job) {
    const MutexLock lock(mutex_);
    if (stopping_) return false;
    running_.reserve(running_.size() + queue_.size() + 1);  // so that AdmitNext() needs no memory
    queue_.Push(Weight(*job), job->positions(), job);
    AdmitNext();
    while (!job->turn && !job->cancellation.cancelled()) job->changed.Wait(mutex_);
    if (job->turn) return true;
    queue_.Remove(job);
    AdmitNext();
    return false;
  }

  // Starts all that may start now. Must be called after each change of the queue or of what runs.
  void AdmitNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    while (!queue_.empty() && MayStart(*queue_.Next())) {
      FairQueue<JobPtr>::Served served = queue_.Take();
      Job& job = *served.item;
      admission_.Start(job.memory());
      running_.push_back(std::move(served.item));
      job.turn = served.user;
      job.started = env_.Now();
      job.changed.NotifyAll();
    }
    has_news_ = true;
    queue_changed_.NotifyAll();
  }

  // The job's share of the pool, in jobs.
  uint64_t Weight(const Job& job) const {
    if (memory_budget_ == 0) return 1;
    const double share = static_cast<double>(job.memory()) / static_cast<double>(memory_budget_);
    return std::max(uint64_t{1}, static_cast<uint64_t>(std::ceil(std::min(share, 1.0) * max_jobs_)));
  }

  bool MayStart(const Job& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return admission_.MayStart(job.memory());
  }

  void Release(const JobPtr& job) {
    const MutexLock lock(mutex_);
    admission_.Finish(job->memory());
    queue_.Finish(*job->turn, Weight(*job), std::chrono::duration_cast<Duration>(env_.Now() - job->started));
    running_.erase(std::find(running_.begin(), running_.end(), job));
    AdmitNext();
  }

  void TellPositions() {
    MonotonicTime next;  // the first time at once
    while (WaitForNews(next)) {
      const std::vector<JobPtr> waiting = TakeNews();
      for (size_t i = 0; i < waiting.size(); ++i) waiting[i]->TellPosition(static_cast<int>(i));
      if (!waiting.empty()) next = std::chrono::steady_clock::now() + between_tellings_;
    }
  }

  // Waits for the queue to change, and until `earliest`. False when the pool ends.
  bool WaitForNews(MonotonicTime earliest) {
    const MutexLock lock(mutex_);
    while (!stopping_ && !has_news_) queue_changed_.Wait(mutex_);
    while (!stopping_ && queue_changed_.WaitUntil(mutex_, earliest)) {
    }
    return !stopping_;
  }

  std::vector<JobPtr> TakeNews() {
    const MutexLock lock(mutex_);
    has_news_ = false;
    return queue_.InOrder();
  }

  Env& env_;
  const ActionRunner run_;
  const int max_jobs_;
  const uint64_t memory_budget_;
  // Each start and each end moves all that wait: to tell them each time is a message for each pair of jobs.
  const Duration between_tellings_;
  mutable Mutex mutex_;
  CondVar queue_changed_;
  Admission admission_ ABSL_GUARDED_BY(mutex_);
  FairQueue<JobPtr> queue_ ABSL_GUARDED_BY(mutex_);
  std::vector<JobPtr> running_ ABSL_GUARDED_BY(mutex_);
  bool has_news_ ABSL_GUARDED_BY(mutex_) = false;  // that have not been told
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread teller_;  // last member: it uses all of the above
};

}  // namespace

std::unique_ptr<Executor> MakePoolExecutor(Env& env, ActionRunner run, int max_jobs, uint64_t memory_budget_bytes,
                                           Duration between_tellings) {
  return std::make_unique<PoolExecutor>(env, std::move(run), max_jobs, memory_budget_bytes, between_tellings);
}

std::unique_ptr<Executor> MakeLocalExecutor(Env& env, LocalExecutorOptions options) {
  const int jobs = options.max_jobs > 0 ? options.max_jobs : UsableProcessors(env);
  const uint64_t budget = options.memory_budget_bytes > 0 ? options.memory_budget_bytes : UsableMemory(env) / 4 * 3;
  auto run = [&env, run_options = std::move(options.run)](const Action& action, ActionObserver* observer,
                                                          Cancellation* cancellation) {
    return RunAction(env, run_options, action, observer, cancellation);
  };
  return MakePoolExecutor(env, std::move(run), jobs, budget);
}

}  // namespace kernix::exec
