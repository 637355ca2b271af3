// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/learning.h"

#include "common/base/error.h"
#include "common/base/exceptions.h"
#include "common/base/log.h"

namespace kernix::build {
namespace {

constexpr size_t kMostPlaces = 16;        // a lesson holds texts and an object, up to some megabytes
constexpr size_t kMostRemembered = 1024;  // in each set

}  // namespace

void Learning::Lesson::Run(UserId user, std::vector<Step> steps, Next next, Failed failed) {
  RunSteps(user, std::move(steps), [next = std::move(next), failed = std::move(failed)](const PlanEnd& end) {
    (void)CatchExceptions("not learned", [&] {
      absl::Status status = end.status;
      if (status.ok() && !end.printed.empty()) {
        status = absl::FailedPreconditionError("the compiler warns of what was to be learned");
      }
      if (status.ok()) status = next(end);
      if (!status.ok()) failed(status);
      return absl::OkStatus();
    });
  });
}

void Learning::Lesson::RunSteps(UserId user, std::vector<Step> steps, PlanDone done) {
  Learning& learning = place_->learning_;
  const auto asker = std::make_shared<exec::Askers>(exec::Asker{.user = user, .max_parallel = 1});
  RunPlan({.steps = std::move(steps)}, asker, *learning.runner_, learning.stop_, *this, std::move(done));
}

Learning::Learning(StepRunner* runner) : runner_(runner) { waiting_.reserve(kMostPlaces); }

Learning::~Learning() {
  stop_->Cancel();
  std::vector<LessonPtr> dropped;
  {
    const MutexLock lock(mutex_);
    dropped.swap(waiting_);
  }
  dropped.clear();
  const MutexLock lock(mutex_);
  while (places_ > 0) idle_.Wait(mutex_);
}

std::unique_ptr<Learning::Place> Learning::TakePlace(const toolchain::Toolchain& toolchain) {
  if (toolchain.described != nullptr) return nullptr;
  const MutexLock lock(mutex_);
  if (runner_ == nullptr || stop_->cancelled() || places_ >= kMostPlaces) return nullptr;
  auto place = std::make_unique<Place>(*this);
  ++places_;
  return place;
}

size_t Learning::size() const {
  const MutexLock lock(mutex_);
  return places_;
}

void Learning::Start(LessonPtr lesson) {
  Learning& learning = lesson->place_->learning();
  {
    const MutexLock lock(learning.mutex_);
    if (learning.is_learning_ && !learning.stop_->cancelled()) return learning.waiting_.push_back(std::move(lesson));
    learning.is_learning_ = true;
    lesson->place_->has_begun_ = true;
  }
  lesson->Start();
}

void Learning::End(Place& place) {
  LessonPtr next;
  {
    const MutexLock lock(mutex_);
    if (place.has_begun_) {
      is_learning_ = !waiting_.empty();
      if (is_learning_) {
        next = std::move(waiting_.front());
        waiting_.erase(waiting_.begin());
        next->place_->has_begun_ = true;
      }
    }
    --places_;
    // Under the lock: once it is released, the object may be destroyed, unless there is a next lesson.
    idle_.NotifyAll();
  }
  if (next != nullptr) next->Start();
}

bool Learning::MayLearn(const Digest& key) {
  const MutexLock lock(mutex_);
  return runner_ != nullptr && !stop_->cancelled() && !cannot_learn_.contains(key);
}

bool Learning::WasAskedFor(const Digest& key) {
  const MutexLock lock(mutex_);
  if (asked_for_.size() >= kMostRemembered) asked_for_.clear();
  return !asked_for_.insert(key).second;
}

void Learning::Forget(const Digest& key) {
  const MutexLock lock(mutex_);
  asked_for_.erase(key);
}

void Learning::NoteFailure(const Digest& key, const absl::Status& status, std::string_view effect) {
  // What the machine lacks just now it may have later.
  const bool is_final = absl::IsFailedPrecondition(status) || KindOf(status) == v1::ErrorDetail::COMPILATION;
  if (stop_->cancelled() || !is_final) return;
  LogOf("not_learned", LogLevel::kInfo, "not_learned",
        {{"reason", std::string(status.message())}, {"effect", std::string(effect)}});
  const MutexLock lock(mutex_);
  if (cannot_learn_.size() >= kMostRemembered) cannot_learn_.clear();
  cannot_learn_.insert(key);
}

}  // namespace kernix::build
