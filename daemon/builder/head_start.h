// SPDX-License-Identifier: Apache-2.0
//
// The first load of a new store waits for two things that take long: a compiler is identified, and compiles the
// handlers' part. kernixd does both at the same time.
#pragma once

#include <memory>

#include "absl/base/thread_annotations.h"
#include "common/base/cancellation.h"
#include "common/base/mutex.h"
#include "common/base/user_id.h"
#include "common/os/env.h"
#include "daemon/builder/step_cache.h"
#include "daemon/builder/step_runner.h"
#include "daemon/plan/header_trees.h"
#include "daemon/plan/include_roots.h"
#include "daemon/plan/plan.h"
#include "daemon/toolchain/toolchain.h"

namespace kernix::build {

// Compiles the handlers' part as loads without flags need it, which most are. Thread-safe.
class HeadStart {
 public:
  // All must outlive the object.
  HeadStart(Env& env, StepRunner& runner, StepCache& cache, IncludeRootsMemo& roots, HeaderTrees& trees)
      : env_(env), runner_(runner), cache_(cache), roots_(roots), trees_(trees) {}
  // Cancels what runs, and waits for its end.
  ~HeadStart();
  HeadStart(const HeadStart&) = delete;
  HeadStart& operator=(const HeadStart&) = delete;

  void Cancel() { stop_->Cancel(); }

  // A compile under way. Without Offer(), its result is dropped.
  class Compile;
  using CompilePtr = std::shared_ptr<Compile>;

  // Begins to compile for `user` with tools whose identity is not known. Null if that is not possible.
  CompilePtr Begin(const toolchain::Toolchain& unidentified, const PlanLimits& limits, UserId user);

  // Says what the tools have turned out to be. Loads of them wait for the result, if they need it. The step cache keeps
  // it if no file of the tools has changed since before Begin(). `compile` may be null.
  void Offer(const CompilePtr& compile, const toolchain::ToolchainPtr& identified);

 private:
  absl::StatusOr<Step> PlanFor(const toolchain::ToolchainPtr& toolchain, const PlanLimits& limits, bool with_headers);

  Env& env_;
  StepRunner& runner_;
  StepCache& cache_;
  IncludeRootsMemo& roots_;
  HeaderTrees& trees_;
  const CancellationPtr stop_ = std::make_shared<Cancellation>();
  Mutex mutex_;
  CondVar ended_;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace kernix::build
