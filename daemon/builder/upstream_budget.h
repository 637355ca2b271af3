// SPDX-License-Identifier: Apache-2.0
//
// One bound for all that a load waits for while the upstream is asked: for its artifact, for a claim, for each step.
#pragma once

#include <chrono>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"
#include "common/os/env.h"

namespace kernix::build {

// Thread-safe. `env` must outlive it.
class UpstreamBudget {
 public:
  UpstreamBudget(Env& env, Duration total) : env_(env), total_(total), left_(total) {}

  // The time of one query. Concurrent queries spend it once.
  class Query {
   public:
    explicit Query(UpstreamBudget& budget) : budget_(budget), deadline_(budget.Begin()) {}
    ~Query() { budget_.End(); }
    Query(const Query&) = delete;
    Query& operator=(const Query&) = delete;

    MonotonicTime deadline() const { return deadline_; }
    // Too little time is left to ask anything.
    bool IsOver() const { return budget_.env_.Now() > deadline_ - kLeast; }

   private:
    UpstreamBudget& budget_;
    const MonotonicTime deadline_;
  };

  // Too little is left to ask anything.
  bool IsSpent() const {
    const MutexLock lock(mutex_);
    return (queries_ == 0 ? left_ : since_ + left_ - env_.Now()) < kLeast;
  }

  // The load has its whole time again. No query may be under way.
  void Renew() {
    const MutexLock lock(mutex_);
    left_ = total_;
  }

 private:
  static constexpr Duration kLeast{10};

  MonotonicTime Begin() {
    const MutexLock lock(mutex_);
    if (queries_++ == 0) since_ = env_.Now();
    return since_ + left_;
  }

  void End() {
    const MutexLock lock(mutex_);
    if (--queries_ == 0) left_ -= env_.Now() - since_;
  }

  Env& env_;
  const MonotonicTime::duration total_;
  mutable Mutex mutex_;
  MonotonicTime::duration left_ ABSL_GUARDED_BY(mutex_);  // when `since_` was
  MonotonicTime since_ ABSL_GUARDED_BY(mutex_);           // the first of the queries began
  int queries_ ABSL_GUARDED_BY(mutex_) = 0;
};

using UpstreamBudgetPtr = std::shared_ptr<UpstreamBudget>;

}  // namespace kernix::build
