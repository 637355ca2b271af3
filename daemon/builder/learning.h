// SPDX-License-Identifier: Apache-2.0
//
// Lessons: kernixd learns from one load for later ones, in the background.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/cancellation.h"
#include "common/base/digest.h"
#include "common/base/lru.h"
#include "common/base/mutex.h"
#include "daemon/builder/command_runner.h"
#include "daemon/builder/plan_runner.h"
#include "daemon/builder/work_queue.h"

namespace kernix::build {

// One lesson at a time, in a thread of its own. The next ones wait. Thread-safe.
class Learning {
 public:
  using Lesson = std::function<void()>;

  // `runner` runs the steps of lessons, and must outlive the object. Without it, there are no lessons.
  explicit Learning(CommandRunner* runner);
  // Cancels the running lesson, and waits for its end.
  ~Learning() { stop_->Cancel(); }

  // Runs a lesson when those before it have ended. False if too many wait, or if the tools are not on this machine,
  // where lessons run.
  bool Teach(const toolchain::Toolchain& toolchain, Lesson lesson);

  // How many run or wait.
  size_t size() const;

  // For lessons: runs `steps` for `user`, one at a time. Unless `may_print`, a step that prints something has failed.
  absl::StatusOr<PlanOutputs> RunSteps(UserId user, std::vector<Step> steps, bool may_print = false);

  // Whether to try: no lesson that has failed for a lasting reason.
  bool MayLearn(const Digest& key);

  // Whether it was asked for before. For lessons that are worth it only for a repeated need.
  bool WasAskedFor(const Digest& key);
  // WasAskedFor() forgets it.
  void Forget(const Digest& key);

  // `effect`: how loads go on without it, for the log.
  void NoteFailure(const Digest& key, const absl::Status& status, std::string_view effect);

 private:
  static constexpr uint64_t kMostRemembered = 1024;

  CommandRunner* const runner_;
  const CancellationPtr stop_ = std::make_shared<Cancellation>();
  mutable Mutex mutex_;
  size_t lessons_ ABSL_GUARDED_BY(mutex_) = 0;
  Lru<Digest, bool> cannot_learn_ ABSL_GUARDED_BY(mutex_){kMostRemembered};
  Lru<Digest, bool> asked_for_ ABSL_GUARDED_BY(mutex_){kMostRemembered};
  WorkQueue queue_;  // last: it uses the others
};

}  // namespace kernix::build
