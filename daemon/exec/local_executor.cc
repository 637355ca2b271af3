// SPDX-License-Identifier: Apache-2.0
//
// Threads: one worker for each job that may run at once, and one thread that looks after the queue. That thread tells
// waiting actions their place and removes cancelled ones, since all workers may be busy for minutes.
//
// Locks are taken in this order: the caller's Cancellation, `mutex_`, a job's own Cancellation, or its Askers. No
// foreign code (observers, ActionDone, the caller's Cancellation) is called with `mutex_` held.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/base/exceptions.h"
#include "common/base/mutex.h"
#include "common/base/strings.h"
#include "daemon/exec/admission.h"
#include "daemon/exec/executor.h"
#include "daemon/exec/fair_queue.h"
#include "daemon/exec/machine_limits.h"

namespace kernix::exec {
namespace {

// An action in the pool: queued, then running or cancelled, then done.
class Job {
 public:
  Job(Action action, AskersPtr askers, ActionObserver* observer, CancellationPtr asked, ActionDone done)
      : action_(std::move(action)),
        askers_(std::move(askers)),
        observer_(observer),
        asked_(std::move(asked)),
        done_(std::move(done)) {}

  const Action& action() const { return action_; }
  const AskersPtr& askers() const { return askers_; }
  std::vector<Place> places() const { return askers_->Places(action_.rank, action_.batch_rank); }
  uint64_t memory() const { return action_.memory_estimate_bytes; }
  int jobs() const { return action_.jobs; }
  Cancellation& cancellation() { return cancellation_; }

  // Forwards the caller's cancellation to this job, then calls `and_then`.
  void Follow(std::function<void()> and_then) {
    if (asked_ == nullptr) return;
    subscription_ = asked_->OnCancel([this, then = std::move(and_then)] {
      cancellation_.Cancel();
      then();
    });
  }

  // Tells the observer how many actions are ahead, unless it already knows or the job has left the queue.
  void TellPlace(int ahead) {
    MutexLock lock(telling_);
    if (observer_ == nullptr || left_queue_ || ahead == told_) return;
    told_ = ahead;
    observer_->OnQueued(ahead);
  }

  // After this, the observer gets no more OnQueued() calls.
  void LeaveQueue() {
    MutexLock lock(telling_);
    left_queue_ = true;
  }

  absl::StatusOr<ActionResult> Run(const ActionRunner& run) { return run(action_, observer_, &cancellation_); }

  void Finish(absl::StatusOr<ActionResult> result) {
    if (subscription_) asked_->Remove(*subscription_);
    std::exchange(done_, nullptr)(std::move(result));
  }

 private:
  const Action action_;
  const AskersPtr askers_;
  ActionObserver* const observer_;
  const CancellationPtr asked_;  // the caller's; may be shared with other jobs
  ActionDone done_;
  std::optional<int> subscription_;  // set before the job is queued
  Cancellation cancellation_;

  Mutex telling_;
  bool left_queue_ ABSL_GUARDED_BY(telling_) = false;
  int told_ ABSL_GUARDED_BY(telling_) = -1;
};

using JobPtr = std::shared_ptr<Job>;

absl::Status CancelledInQueue(const Job& job) {
  return MakeError(v1::ErrorDetail::CANCELLED, StrCat("step \"", job.action().step, "\" was cancelled"));
}

class PoolExecutor : public Executor {
 public:
  PoolExecutor(ActionRunner run, int max_jobs, uint64_t memory_budget, Duration between_tellings)
      : run_(std::move(run)),
        max_jobs_(max_jobs),
        memory_budget_(memory_budget),
        between_tellings_(between_tellings),
        admission_(max_jobs, memory_budget) {
    for (int i = 0; i < max_jobs; ++i) threads_.emplace_back([this] { WorkLoop(); });
    threads_.emplace_back([this] { QueueLoop(); });
  }

  ~PoolExecutor() override {
    Stop();
    for (std::thread& thread : threads_) thread.join();
  }

  void Submit(Action action, AskersPtr askers, ActionObserver* observer, CancellationPtr cancellation,
              ActionDone done) override {
    const auto job =
        std::make_shared<Job>(std::move(action), std::move(askers), observer, std::move(cancellation), std::move(done));
    const absl::Status queued = CatchExceptions("the job could not be queued", [&] {
      job->Follow([this] { QueueChanged(); });
      return Enqueue(job);
    });
    if (!queued.ok()) job->Finish(queued);
  }

  void AskersChanged(const Askers& askers) override {
    MutexLock lock(mutex_);
    queue_.Move([&](const JobPtr& job) { return job->askers().get() == &askers; },
                [](const JobPtr& job) { return job->places(); });
    WakeAll();
  }

  ExecutorLoad load() const override {
    MutexLock lock(mutex_);
    return {.running = admission_.running(),
            .queued = static_cast<int>(queue_.size()),
            .max_jobs = max_jobs_,
            .memory_budget_bytes = memory_budget_};
  }

 private:
  absl::Status Enqueue(const JobPtr& job) {
    MutexLock lock(mutex_);
    if (stopping_) return CancelledInQueue(*job);
    queue_.Push(Weight(*job), job->places(), job);
    WakeAll();
    return absl::OkStatus();
  }

  // The job's share of the pool, in jobs.
  uint64_t Weight(const Job& job) const {
    const auto jobs = static_cast<uint64_t>(std::clamp(job.jobs(), 1, max_jobs_));
    if (memory_budget_ == 0) return jobs;
    const double share = static_cast<double>(job.memory()) / static_cast<double>(memory_budget_);
    return std::max(jobs, static_cast<uint64_t>(std::ceil(std::min(share, 1.0) * max_jobs_)));
  }

  void QueueChanged() {
    MutexLock lock(mutex_);
    WakeAll();
  }

  void WakeAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    queue_changed_ = true;
    wake_.NotifyAll();
  }

  void Stop() {
    MutexLock lock(mutex_);
    stopping_ = true;
    for (const JobPtr& job : queue_.InOrder()) job->cancellation().Cancel();
    for (const JobPtr& job : running_) job->cancellation().Cancel();
    WakeAll();
  }

  void WorkLoop() {
    while (const std::optional<Served> served = NextJob()) {
      const JobPtr& job = served->item;
      job->LeaveQueue();
      // If an output does not fit into memory, only this job fails, not the pool.
      absl::StatusOr<ActionResult> result = CatchExceptions("the job ended", [&] { return job->Run(run_); });
      Release(*served);
      job->Finish(std::move(result));
    }
  }

  using Served = FairQueue<JobPtr>::Served;

  // Waits for the next job and admits it. Nothing when the pool ends.
  std::optional<Served> NextJob() {
    MutexLock lock(mutex_);
    while (!stopping_ && (queue_.empty() || !MayStart(*queue_.Next()))) wake_.Wait(mutex_);
    if (stopping_) return std::nullopt;
    Served served = queue_.Take();
    admission_.Start(served.item->memory(), served.item->jobs());
    running_.push_back(served.item);
    WakeAll();
    return served;
  }

  bool MayStart(const Job& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return admission_.MayStart(job.memory(), job.jobs());
  }

  void Release(const Served& served) {
    const JobPtr& job = served.item;
    MutexLock lock(mutex_);
    admission_.Finish(job->memory(), job->jobs());
    queue_.Finish(served.user, Weight(*job));
    running_.erase(std::find(running_.begin(), running_.end(), job));
    WakeAll();
  }

  void QueueLoop() {
    MonotonicTime next_telling;  // at once, if places change
    bool has_news = false;
    while (WaitForQueueChange(has_news ? std::optional(next_telling) : std::nullopt)) {
      for (const JobPtr& job : TakeCancelled()) {
        job->LeaveQueue();
        job->Finish(CancelledInQueue(*job));
      }
      const MonotonicTime now = std::chrono::steady_clock::now();
      has_news = now < next_telling;
      if (!has_news && TellPlaces()) next_telling = now + between_tellings_;
    }
  }

  // Waits until then at most. Returns false when the pool ends and the queue is empty.
  bool WaitForQueueChange(std::optional<MonotonicTime> until) {
    MutexLock lock(mutex_);
    while (!queue_changed_ && !stopping_) {
      if (!until) {
        wake_.Wait(mutex_);
      } else if (!wake_.WaitUntil(mutex_, *until)) {
        break;
      }
    }
    queue_changed_ = false;
    return !stopping_ || !queue_.empty();
  }

  std::vector<JobPtr> TakeCancelled() {
    MutexLock lock(mutex_);
    std::vector<JobPtr> cancelled = queue_.Remove([](const JobPtr& job) { return job->cancellation().cancelled(); });
    if (!cancelled.empty()) WakeAll();  // the queue may have a new head
    return cancelled;
  }

  // False: nobody waits, or the queue is about to change.
  bool TellPlaces() {
    std::vector<JobPtr> waiting;
    {
      MutexLock lock(mutex_);
      if (!queue_.empty() && MayStart(*queue_.Next())) return false;
      waiting = queue_.InOrder();
    }
    for (size_t i = 0; i < waiting.size(); ++i) waiting[i]->TellPlace(static_cast<int>(i));
    return !waiting.empty();
  }

  const ActionRunner run_;
  const int max_jobs_;
  const uint64_t memory_budget_;
  // Each start and each end moves all that wait: to tell them each time is a message for each pair of jobs.
  const Duration between_tellings_;
  mutable Mutex mutex_;
  CondVar wake_;
  Admission admission_ ABSL_GUARDED_BY(mutex_);
  FairQueue<JobPtr> queue_ ABSL_GUARDED_BY(mutex_);
  std::vector<JobPtr> running_ ABSL_GUARDED_BY(mutex_);
  bool queue_changed_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;  // last member: the threads use all of the above
};

}  // namespace

std::unique_ptr<Executor> MakePoolExecutor(ActionRunner run, int max_jobs, uint64_t memory_budget_bytes,
                                           Duration between_tellings) {
  return std::make_unique<PoolExecutor>(std::move(run), max_jobs, memory_budget_bytes, between_tellings);
}

std::unique_ptr<Executor> MakeLocalExecutor(Env& env, LocalExecutorOptions options) {
  const int jobs = options.max_jobs > 0 ? options.max_jobs : UsableProcessors(env);
  const uint64_t budget = options.memory_budget_bytes > 0 ? options.memory_budget_bytes : UsableMemory(env) / 4 * 3;
  auto run = [&env, place = std::move(options.place)](const Action& action, ActionObserver* observer,
                                                      Cancellation* cancellation) {
    return RunAction(env, place, action, observer, cancellation);
  };
  return MakePoolExecutor(std::move(run), jobs, budget);
}

}  // namespace kernix::exec
