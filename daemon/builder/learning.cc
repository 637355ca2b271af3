// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/learning.h"

#include <string>
#include <utility>

#include "common/base/error.h"
#include "common/base/exceptions.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"

namespace kernix::build {
namespace {

constexpr size_t kMostLessons = 16;  // one holds texts and an object, up to some megabytes

}  // namespace

Learning::Learning(CommandRunner* runner) : runner_(runner), queue_(runner == nullptr ? 0 : 1) {}

bool Learning::Teach(const toolchain::Toolchain& toolchain, Lesson lesson) {
  if (toolchain.described != nullptr || runner_ == nullptr) return false;
  const MutexLock lock(mutex_);
  if (lessons_ >= kMostLessons) return false;
  queue_.Push([this, lesson = std::move(lesson)] {
    IgnoreExceptions("not learned", lesson);
    const MutexLock ended(mutex_);
    --lessons_;
  });
  ++lessons_;
  return true;
}

size_t Learning::size() const {
  const MutexLock lock(mutex_);
  return lessons_;
}

absl::StatusOr<PlanOutputs> Learning::RunSteps(UserId user, std::vector<Step> steps, bool may_print) {
  const auto asker = std::make_shared<exec::Askers>(exec::Asker{.user = user, .max_parallel = 1});
  const auto run_step = [this](const Step& step, const StepRun& run) { return runner_->RunStep(step, run); };
  PlanEnd end = RunPlan({.steps = std::move(steps)}, run_step, {.askers = asker, .cancellation = stop_});
  KERNIX_RETURN_IF_ERROR(end.status);
  if (!may_print && !end.printed.empty())
    return absl::FailedPreconditionError("the compiler warns of what was to be learned");
  return std::move(end.outputs);
}

bool Learning::MayLearn(const Digest& key) {
  const MutexLock lock(mutex_);
  return runner_ != nullptr && !stop_->cancelled() && !cannot_learn_.Contains(key);
}

bool Learning::WasAskedFor(const Digest& key) {
  const MutexLock lock(mutex_);
  if (asked_for_.Find(key) != nullptr) return true;
  asked_for_.Put(key, true);
  return false;
}

void Learning::Forget(const Digest& key) {
  const MutexLock lock(mutex_);
  asked_for_.Drop(key);
}

void Learning::NoteFailure(const Digest& key, const absl::Status& status, std::string_view effect) {
  // The machine may have the missing resource later.
  const bool is_final = absl::IsFailedPrecondition(status) || KindOf(status) == v1::ErrorDetail::COMPILATION;
  if (stop_->cancelled() || !is_final) return;
  LogOf("not_learned", LogLevel::kInfo, "not_learned",
        {{"reason", std::string(status.message())}, {"effect", std::string(effect)}});
  const MutexLock lock(mutex_);
  cannot_learn_.Put(key, true);
}

}  // namespace kernix::build
