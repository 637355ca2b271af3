// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/learning.h"

#include "common/base/error.h"
#include "common/base/exceptions.h"
#include "common/base/log.h"

namespace kernix::build {
namespace {

constexpr size_t kMostRemembered = 1024;  // in each set

}  // namespace

void Learning::Lesson::Run(StepRunner& runner, UserId user, std::vector<Step> steps, Next next, Failed failed) {
  RunPlan({.steps = std::move(steps)}, user, runner, /*max_parallel=*/1, turn_->stop(), *this,
          [next = std::move(next), failed = std::move(failed)](const PlanEnd& end) {
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

Learning::~Learning() {
  stop_->Cancel();
  const MutexLock lock(mutex_);
  while (is_learning_) idle_.Wait(mutex_);
}

std::unique_ptr<Learning::Turn> Learning::Begin() {
  const MutexLock lock(mutex_);
  if (!learns_ || stop_->cancelled() || is_learning_) return nullptr;
  auto turn = std::make_unique<Turn>(*this);
  is_learning_ = true;
  return turn;
}

void Learning::End() {
  const MutexLock lock(mutex_);
  is_learning_ = false;
  // Under the lock: once it is released, the object may be destroyed.
  idle_.NotifyAll();
}

bool Learning::MayLearn(const Digest& key) {
  const MutexLock lock(mutex_);
  return learns_ && !stop_->cancelled() && !cannot_learn_.contains(key);
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
  Log(LogLevel::kInfo, "not_learned", {{"reason", std::string(status.message())}, {"effect", std::string(effect)}});
  const MutexLock lock(mutex_);
  if (cannot_learn_.size() >= kMostRemembered) cannot_learn_.clear();
  cannot_learn_.insert(key);
}

}  // namespace kernix::build
