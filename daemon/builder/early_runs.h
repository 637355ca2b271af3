// SPDX-License-Identifier: Apache-2.0
//
// Commands of a load that run before it is known whether it needs them: while its toolchain is being identified,
// kernixd cannot look it up, but it can compile it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "common/base/cancellation.h"
#include "common/base/digest.h"
#include "common/base/metrics.h"
#include "common/base/mutex.h"
#include "common/base/user_id.h"
#include "common/os/env.h"
#include "daemon/builder/step_times.h"
#include "daemon/builder/toolchain_headers.h"
#include "daemon/exec/executor.h"

namespace kernix::build {

// How all early runs of a builder have ended.
struct EarlyRunCounts {
  MetricCounter taken;
  MetricCounter dropped;

  // The registry must not be read after the object is destroyed.
  void Register(MetricsRegistry& registry) const;
};

// The early runs of one load. No other load takes them: it may mean other tools by the same words. Thread-safe.
class EarlyRuns {
 public:
  // `env` and `executor` must outlive the commands.
  EarlyRuns(Env& env, exec::Executor& executor, UserId user, std::shared_ptr<EarlyRunCounts> counts);
  // Cancels what nobody has taken.
  ~EarlyRuns();
  EarlyRuns(const EarlyRuns&) = delete;
  EarlyRuns& operator=(const EarlyRuns&) = delete;

  // Starts to run `action`, whose salt may still be missing.
  void Begin(const exec::Action& action);

  // Whether a run has begun.
  bool any() const;
  // Before the first of them.
  const BuildStart& start() const { return start_; }

  // Passes on the run of that action, whatever its salt, as if it had been submitted with the other parameters, which
  // are as for Executor::Submit(). False, and nothing happens, if there is none.
  bool GiveTo(const exec::Action& action, TimedStep& step, const CancellationPtr& cancellation,
              const exec::ActionDone& done);

 private:
  class Run;

  Env& env_;
  exec::Executor& executor_;
  const exec::AskersPtr askers_;
  const std::shared_ptr<EarlyRunCounts> counts_;
  const BuildStart start_;
  mutable Mutex mutex_;
  bool any_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<Digest, std::shared_ptr<Run>> waiting_ ABSL_GUARDED_BY(mutex_);  // by the action's digest without a salt
};

}  // namespace kernix::build
