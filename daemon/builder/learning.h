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

// One lesson at a time. The next ones wait. Thread-safe.
class Learning {
 public:
  // A lesson's place. Ends when it is destroyed; the object waits for that.
  class Place {
   public:
    explicit Place(Learning& learning) : learning_(learning) {}
    ~Place() { learning_.End(*this); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    Learning& learning() const { return learning_; }

   private:
    friend class Learning;

    Learning& learning_;
    bool has_begun_ = false;  // protected by `learning_.mutex_`
  };

  // Something to learn by plans of its own, which nobody observes. Ends with the last reference to it.
  class Lesson : public PlanObserver {
   public:
    explicit Lesson(std::unique_ptr<Place> place) : place_(std::move(place)) {}

    void OnQueued(const std::string&, int) override {}
    void OnStarted(const exec::Action&) override {}
    void OnOutput(std::string_view) override {}
    void OnStepDone(int) override {}

   protected:
    // Lessons that waited may have taught it meanwhile.
    virtual void Start() = 0;

    using Next = std::function<absl::Status(const PlanEnd&)>;
    using Failed = std::function<void(const absl::Status&)>;

    // Runs `steps` for `user`, one at a time, then `next`. If they fail or print something, or if `next` fails, calls
    // `failed`. Both must hold a reference to the lesson.
    void Run(UserId user, std::vector<Step> steps, Next next, Failed failed);

    // Runs `steps` for `user`, one at a time. `done` must hold a reference to the lesson.
    void RunSteps(UserId user, std::vector<Step> steps, PlanDone done);

   private:
    friend class Learning;

    const std::unique_ptr<Place> place_;  // destroyed after all that derived classes have
  };
  using LessonPtr = std::shared_ptr<Lesson>;

  // `runner` runs the steps of lessons, and must outlive the object. Without it, nothing is learned.
  explicit Learning(StepRunner* runner);
  // Ends what is being learned, and waits for that.
  ~Learning();

  // For a lesson that is to be started or dropped, with tools of `toolchain`. Null if too many wait, if none may begin
  // any more, or if the tools are not on this machine, where lessons run.
  std::unique_ptr<Place> TakePlace(const toolchain::Toolchain& toolchain);

  // How many have a place.
  size_t size() const;

  // Starts it when those before it have ended.
  static void Start(LessonPtr lesson);

  // Whether to try: not again what failed for a lasting reason.
  bool MayLearn(const Digest& key);

  // Whether it was asked for before. For what is worth learning only when it comes again.
  bool WasAskedFor(const Digest& key);
  // WasAskedFor() forgets it.
  void Forget(const Digest& key);

  // `effect`: what loads do without, for the log.
  void NoteFailure(const Digest& key, const absl::Status& status, std::string_view effect);

 private:
  void End(Place& place);

  StepRunner* const runner_;
  const CancellationPtr stop_ = std::make_shared<Cancellation>();
  mutable Mutex mutex_;
  CondVar idle_;
  size_t places_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_learning_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<LessonPtr> waiting_ ABSL_GUARDED_BY(mutex_);  // has room for all, so that Start() needs no memory
  absl::flat_hash_set<Digest> cannot_learn_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<Digest> asked_for_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::build
