// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/head_start.h"

#include <functional>
#include <optional>
#include <utility>

#include "common/base/exceptions.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/os/file_identity.h"
#include "daemon/exec/action_digest.h"

namespace kernix::build {
namespace {

using Result = absl::StatusOr<exec::ActionResult>;

// The actions have different salts, since one of them knows no identity.
bool IsSameCommand(exec::Action a, const exec::Action& b) {
  a.salt = b.salt;
  return exec::DigestOfAction(a, {}).hash == exec::DigestOfAction(b, {}).hash;
}

}  // namespace

class HeadStart::Compile {
 public:
  Compile(HeadStart& owner, Step step, PlanLimits limits, UserId user)
      : owner_(owner), step_(std::move(step)), limits_(limits), user_(user) {
    const MutexLock lock(owner_.mutex_);
    ++owner_.running_;
  }
  ~Compile() {
    owner_.trees_.DropUnstaged(*step_.action.trees);
    const MutexLock lock(owner_.mutex_);
    --owner_.running_;
    // Under the lock: once it is released, the owner may be destroyed.
    owner_.ended_.NotifyAll();
  }
  Compile(const Compile&) = delete;
  Compile& operator=(const Compile&) = delete;

  const Step& step() const { return step_; }
  const PlanLimits& limits() const { return limits_; }
  UserId user() const { return user_; }

  void End(Result result) {
    std::optional<Taker> taker;
    {
      const MutexLock lock(mutex_);
      result_ = std::move(result);
      taker = std::exchange(taker_, std::nullopt);
    }
    if (taker) Give(*taker);
  }

  struct Taker {
    Step step;  // with its salt
    toolchain::ToolchainPtr toolchain;
    std::function<void(const absl::Status&)> done;
  };
  void GiveTo(Taker taker) {
    {
      const MutexLock lock(mutex_);
      if (!result_) {
        taker_ = std::move(taker);
        return;
      }
    }
    Give(taker);
  }

 private:
  // There is a result.
  void Give(const Taker& taker) {
    const Result result = Ended();
    if (result.ok() && Unchanged(owner_.env_, taker.toolchain->files)) {
      // What cannot be kept is made again.
      (void)CatchExceptions("not kept", [&] {
        owner_.cache_.Keep(taker.step, *taker.toolchain, start_, *result);
        return absl::OkStatus();
      });
    }
    taker.done(result.status());
  }
  Result Ended() {
    const MutexLock lock(mutex_);
    return *result_;
  }

  HeadStart& owner_;
  const Step step_;
  const PlanLimits limits_;
  const UserId user_;
  const BuildStart start_ = owner_.cache_.Now();
  Mutex mutex_;
  std::optional<Result> result_ ABSL_GUARDED_BY(mutex_);
  std::optional<Taker> taker_ ABSL_GUARDED_BY(mutex_);  // who waits for it
};

HeadStart::~HeadStart() {
  stop_->Cancel();
  const MutexLock lock(mutex_);
  while (running_ > 0) ended_.Wait(mutex_);
}

absl::StatusOr<Step> HeadStart::PlanFor(const toolchain::ToolchainPtr& toolchain, const PlanLimits& limits,
                                        bool with_headers) {
  BuildRequest request;
  request.toolchain = toolchain;
  KERNIX_ASSIGN_OR_RETURN(Plan plan, MakePlan(request, roots_, limits));
  if (with_headers) KERNIX_RETURN_IF_ERROR(StagePlan(request, {}, trees_, plan));
  return std::move(plan.steps.front());  // the link, which has nothing to link, comes after it
}

HeadStart::CompilePtr HeadStart::Begin(const toolchain::Toolchain& unidentified, const PlanLimits& limits,
                                       UserId user) {
  CompilePtr compile;
  const absl::Status begun = CatchExceptions("the handlers' part was not compiled ahead", [&]() -> absl::Status {
    const auto toolchain = std::make_shared<const toolchain::Toolchain>(unidentified);
    KERNIX_ASSIGN_OR_RETURN(Step step, PlanFor(toolchain, limits, /*with_headers=*/true));
    auto made = std::make_shared<Compile>(*this, std::move(step), limits, user);
    runner_.RunCommand(made->step().action,
                       {.user = user, .observer = nullptr, .cancellation = stop_, .done = [made](Result result) {
                          made->End(std::move(result));
                        }});
    compile = std::move(made);
    return absl::OkStatus();
  });
  if (!begun.ok()) Log(LogLevel::kDebug, "no_head_start", {{"reason", begun.message()}});
  return compile;
}

void HeadStart::Offer(const CompilePtr& compile, const toolchain::ToolchainPtr& identified) {
  if (compile == nullptr) return;
  absl::StatusOr<Step> step = PlanFor(identified, compile->limits(), /*with_headers=*/false);
  if (!step.ok() || !IsSameCommand(compile->step().action, step->action)) return;
  auto done = runner_.Expect(*step, *identified, compile->user());
  compile->GiveTo({*std::move(step), identified, std::move(done)});
}

}  // namespace kernix::build
