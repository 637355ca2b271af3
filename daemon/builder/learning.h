// SPDX-License-Identifier: Apache-2.0
//
// What kernixd learns from one load for later ones, in the background.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "common/base/cancellation.h"
#include "common/base/digest.h"
#include "common/base/mutex.h"
#include "daemon/builder/plan_runner.h"

namespace kernix::build {

// One lesson at a time, so that learning takes no more than one processor. Thread-safe.
class Learning {
 public:
  // Ends when it is destroyed. The object waits for that.
  class Turn {
   public:
    explicit Turn(Learning& learning) : learning_(learning) {}
    ~Turn() { learning_.End(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    const CancellationPtr& stop() const { return learning_.stop(); }

   private:
    Learning& learning_;
  };

  // Something to learn by plans of its own, which nobody observes. Ends with the last reference to it.
  class Lesson : public PlanObserver {
   public:
    explicit Lesson(std::unique_ptr<Turn> turn) : turn_(std::move(turn)) {}
    virtual void Start() = 0;

    void OnQueued(const std::string&, int) override {}
    void OnStarted(const exec::Action&) override {}
    void OnOutput(std::string_view) override {}
    void OnStepDone(int) override {}

   protected:
    using Next = std::function<absl::Status(const PlanEnd&)>;
    using Failed = std::function<void(const absl::Status&)>;

    // Runs `steps` for `user`, one at a time, then `next`. If they fail or print something, or if `next` fails, calls
    // `failed`. Both must hold a reference to the lesson.
    void Run(StepRunner& runner, UserId user, std::vector<Step> steps, Next next, Failed failed);

   private:
    const std::unique_ptr<Turn> turn_;  // destroyed after all that derived classes have
  };

  // Without `learns`, nothing is learned.
  explicit Learning(bool learns) : learns_(learns) {}
  // Ends what is being learned, and waits for that.
  ~Learning();

  // Null while something else is being learned.
  std::unique_ptr<Turn> Begin();

  // Whether to try: not again what failed for a lasting reason.
  bool MayLearn(const Digest& key);

  // Whether it was asked for before. For what is worth learning only when it comes again.
  bool WasAskedFor(const Digest& key);
  // Has it come twice again.
  void Forget(const Digest& key);

  // `effect`: what loads do without, for the log.
  void NoteFailure(const Digest& key, const absl::Status& status, std::string_view effect);

  // Fires when lessons must end.
  const CancellationPtr& stop() const { return stop_; }

 private:
  void End();

  const bool learns_;
  const CancellationPtr stop_ = std::make_shared<Cancellation>();
  Mutex mutex_;
  CondVar idle_;
  bool is_learning_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_set<Digest> cannot_learn_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<Digest> asked_for_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::build
