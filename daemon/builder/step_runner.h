// SPDX-License-Identifier: Apache-2.0
//
// Runs a step in the fastest way that leads to its outputs.
#pragma once

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "common/base/cancellation.h"
#include "common/base/digest.h"
#include "common/base/metrics.h"
#include "common/base/mutex.h"
#include "common/base/user_id.h"
#include "daemon/builder/step_cache.h"
#include "daemon/exec/executor.h"
#include "daemon/plan/plan.h"

namespace kernix::build {

// A compile by nvcc runs as nvcc's phases (see nvcc_phases.h). If nvcc's dry run is not understood, or a phase fails,
// the step runs as its own command, whose output and errors are what users see. A step that can be reused (see Reuse)
// runs once. Any other step is one command.
// Thread-safe.
class StepRunner {
 public:
  // Both must outlive the runner. Without a `cache`, every step runs.
  explicit StepRunner(exec::Executor& executor, StepCache* cache = nullptr) : executor_(executor), cache_(cache) {}

  // How one step runs.
  struct Run {
    UserId user;
    toolchain::ToolchainPtr toolchain = nullptr;  // of the step; null: its result is neither kept nor reused
    uint64_t max_output_bytes = 0;                // of all phases together, which stay in memory meanwhile; 0: no limit
    bool reuse = true;                            // false: runs the step although there is a result of an earlier one
    size_t max_parallel = 0;                      // most phases at a time; 0: any number
    exec::ActionObserver* observer;               // may be null; must outlive the call of `done`
    CancellationPtr cancellation;
    exec::ActionDone done;
  };

  // As Executor::Submit() does with the step's action: calls `done` exactly once unless it throws. Phases tell the
  // observer when they wait and start; what they print reaches it when all have succeeded.
  void Submit(const Step& step, Run run);

  // The registry must not be read after the runner is destroyed.
  void Register(MetricsRegistry& registry) const;

 private:
  class Phased;

  // Runs the step, and keeps its result.
  void RunAndKeep(const Step& step, Run run);

  // What nvcc has answered to a dry run; null: not known yet.
  std::shared_ptr<const std::string> DryRun(const Digest& question);
  void KeepDryRun(const Digest& question, const std::string& answer);

  exec::Executor& executor_;
  StepCache* const cache_;
  MetricCounter in_phases_;
  MetricCounter not_understood_;
  MetricCounter phase_failed_;

  Mutex mutex_;
  absl::flat_hash_map<Digest, std::shared_ptr<const std::string>> dry_runs_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::build
