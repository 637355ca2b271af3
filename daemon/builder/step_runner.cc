// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/step_runner.h"

#include <optional>
#include <utility>

#include "common/base/error.h"
#include "common/base/exceptions.h"
#include "common/base/status_macros.h"
#include "daemon/builder/compiled_preambles.h"
#include "daemon/builder/cpp_compiler.h"
#include "daemon/builder/faster_action.h"
#include "daemon/builder/learning.h"
#include "daemon/builder/linker.h"
#include "daemon/builder/nvcc_compiler.h"
#include "daemon/language/read/device_text.h"

namespace kernix::build {
namespace {

constexpr char kNotRun[] = "the step could not be run";

// The step with exactly what counts of its device unit, where all bodies do.
absl::StatusOr<Step> WithCanonicalDeviceUnit(Step step, const HeldOutputsPtr& outputs) {
  if (step.reuse->device_unit.empty() || !step.reuse->host_bodies_count) return step;
  for (exec::InputFile& input : step.action.inputs) {
    if (input.path != step.reuse->device_unit) continue;
    std::optional<std::string> text = language::CanonicalDeviceText(*input.content);
    if (!text) continue;
    KERNIX_ASSIGN_OR_RETURN(exec::Content content, Hold(outputs, exec::MakeContent(*std::move(text))));
    input = exec::MakeInput(input.path, std::move(content));
  }
  step.reuse->device_unit.clear();
  return step;
}

}  // namespace

struct StepRunner::Shortcuts {
  Shortcuts(Env& env, StepRunner& runner, StepCache& cache, StepRunner* lessons)
      : compiled_preambles(cache, learning),
        nvcc(env, runner, cache, compiled_preambles, learning),
        cpp(runner, compiled_preambles),
        linker(env, runner),
        learning(lessons) {}

  CompiledPreambles compiled_preambles;
  NvccCompiler nvcc;
  CppCompiler cpp;
  Linker linker;
  Learning learning;  // last: what it waits for uses the others
};

StepRunner::StepRunner(Env& env, exec::Executor& executor, StepCache& cache, StepRunner* lessons)
    : env_(env),
      executor_(executor),
      cache_(cache),
      shortcuts_(std::make_unique<Shortcuts>(env, *this, cache, lessons)) {}

StepRunner::~StepRunner() = default;

void StepRunner::Submit(const Step& step, Run run) {
  if (!step.dependencies.empty()) return shortcuts_->nvcc.Submit(step, std::move(run));
  const bool compiles_cpp = step.tool == Tool::kHostCompiler && step.reads_sources;
  if (compiles_cpp && run.toolchain != nullptr && run.mode == CompileMode::kFast)
    return shortcuts_->cpp.Submit(step, std::move(run));
  if (step.is_link) return shortcuts_->linker.Submit(step, std::move(run));
  if (step.reuse && run.toolchain != nullptr && run.mode != CompileMode::kWhole) {
    std::shared_ptr<TimedStep> timed = Measure(step.action, run);
    absl::StatusOr<Step> canonical = WithCanonicalDeviceUnit(step, run.outputs);
    if (!canonical.ok()) return run.done(canonical.status());
    if (run.mode == CompileMode::kAnew)
      return executor_.Submit(canonical->action, run.askers, timed.get(), run.cancellation, run.done);
    const Digest key = StepCache::KeyOf(*canonical, *run.toolchain);
    std::optional<exec::ActionResult> kept = cache_.Find(key, *run.toolchain);
    if (!kept) {
      return RunOnce(
          std::make_shared<Reusable>(Reusable{key, *std::move(canonical), std::move(run), std::move(timed)}));
    }
    reused_.Add();
    timed->TakesResult(cache::StepWay::kReused);
    return run.done(*std::move(kept));
  }
  RunCommand(step.action, std::move(run));
}

void StepRunner::RunCommand(const exec::Action& action, Run run) {
  const std::shared_ptr<TimedStep> timed = Measure(action, run);
  executor_.Submit(action, run.askers, timed.get(), run.cancellation, run.done);
}

std::shared_ptr<TimedStep> StepRunner::Measure(const exec::Action& action, Run& run) {
  auto timed = std::make_shared<TimedStep>(env_, action.step, run.observer);
  run.done = [timed, done = std::move(run.done)](absl::StatusOr<exec::ActionResult> result) {
    timed->End(result);
    done(std::move(result));
  };
  return timed;
}

void StepRunner::RunOnce(ReusablePtr reusable) {
  const exec::AskersPtr askers = reusable->run.askers;
  std::optional<StepOfUser> flight;
  {
    const MutexLock lock(mutex_);
    const StepOfUser own(reusable->key, askers->First());
    if (askers->AreOf(own.second)) {
      const auto [running, mine] = running_.try_emplace(own, StepFlight{askers, {}});
      if (!mine && running->second.askers->Has(own.second))
        return running->second.waiting.push_back(std::move(reusable));
      if (mine) flight = own;
    }
  }
  const auto end = [this, reusable, flight](absl::StatusOr<exec::ActionResult> result) {
    if (flight) Share(*flight, result.status());
    reusable->run.done(std::move(result));
  };
  // Others may wait for this one, so that it has to end in any case.
  const absl::Status led = CatchExceptions(kNotRun, [&] {
    FindOrRun(reusable, end);
    return absl::OkStatus();
  });
  if (!led.ok()) end(led);
}

void StepRunner::AskersChanged(const exec::Askers& askers) {
  (void)CatchExceptions("places stay as they were", [&] {
    executor_.AskersChanged(askers);
    for (const ReusablePtr& reusable : TakeThoseInAnothersTurn()) RunAlone(reusable);
    return absl::OkStatus();
  });
}

std::vector<StepRunner::ReusablePtr> StepRunner::TakeThoseInAnothersTurn() {
  std::vector<ReusablePtr> taken;
  const MutexLock lock(mutex_);
  for (auto& [step, flight] : running_) {
    const UserId user = step.second;
    const bool has_user = flight.askers->Has(user);
    taken.reserve(taken.size() + flight.waiting.size());
    std::erase_if(flight.waiting, [&](ReusablePtr& other) {
      if (has_user && other->run.askers->AreOf(user)) return false;
      taken.push_back(std::move(other));
      return true;
    });
  }
  return taken;
}

void StepRunner::RunAlone(const ReusablePtr& reusable) {
  const absl::Status run = CatchExceptions(kNotRun, [&] {
    RunAndKeep(reusable, reusable->run.done);
    return absl::OkStatus();
  });
  if (!run.ok()) reusable->run.done(run);
}

void StepRunner::FindOrRun(const ReusablePtr& reusable, const exec::ActionDone& done) {
  const Run& run = reusable->run;
  const auto go_on = [this, reusable, done](std::optional<exec::ActionResult> found) {
    if (found) {
      upstream_.Add();
      reusable->timed->TakesResult(cache::StepWay::kUpstream);
      return done(*std::move(found));
    }
    const absl::Status run_here = CatchExceptions(kNotRun, [&] {
      RunAndKeep(reusable, done);
      return absl::OkStatus();
    });
    if (!run_here.ok()) done(run_here);
  };
  cache_.FindUpstream(reusable->key, reusable->step, run.toolchain, run.looks, run.cancellation, go_on);
}

void StepRunner::Share(const StepOfUser& flight, const absl::Status& status) {
  std::vector<ReusablePtr> waiting;
  {
    const MutexLock lock(mutex_);
    const auto running = running_.find(flight);
    if (running == running_.end()) return;
    waiting = std::move(running->second.waiting);
    running_.erase(running);
  }
  const bool was_cancelled = !status.ok() && KindOf(status) == v1::ErrorDetail::CANCELLED;
  for (const ReusablePtr& other : waiting) {
    // As a later load would do: what was not kept serves nobody else, and headers may have changed meanwhile. So may
    // those of a compiled preamble.
    other->step.faster = nullptr;
    std::optional<exec::ActionResult> kept =
        status.ok() ? cache_.Find(other->key, *other->run.toolchain) : std::nullopt;
    if (kept) {
      joined_.Add();
      other->timed->TakesResult(cache::StepWay::kJoined);
      other->run.done(*std::move(kept));
    } else if (was_cancelled) {
      RunOnce(other);
    } else {
      RunAlone(other);
    }
  }
}

void StepRunner::RunAndKeep(const ReusablePtr& reusable, const exec::ActionDone& done) {
  run_.Add();
  const exec::Action& own = reusable->step.action;
  const BuildStart start = cache_.Now();
  auto keep = [this, reusable, done, start](absl::StatusOr<exec::ActionResult> result) {
    if (result.ok()) {
      // What cannot be kept does not fail the step.
      (void)CatchExceptions("not kept", [&] {
        cache_.Keep(reusable->key, reusable->step, *reusable->run.toolchain, start, *result);
        return absl::OkStatus();
      });
    }
    done(std::move(result));
  };
  if (reusable->step.faster == nullptr) return Execute(reusable, own, std::move(keep));
  const RunAction execute = [this, reusable](const exec::Action& action, exec::ActionDone ended) {
    Execute(reusable, action, std::move(ended));
  };
  RunFaster(reusable->step, execute, execute, std::move(keep));
}

void StepRunner::Execute(const ReusablePtr& reusable, const exec::Action& action, exec::ActionDone done) {
  const Run& run = reusable->run;
  const absl::Status submitted = CatchExceptions(kNotRun, [&] {
    executor_.Submit(action, run.askers, reusable->timed.get(), run.cancellation, done);
    return absl::OkStatus();
  });
  if (!submitted.ok()) done(submitted);
}

size_t StepRunner::LessonsLeft() const { return shortcuts_->learning.size(); }

void StepRunner::Register(MetricsRegistry& registry) const {
  shortcuts_->nvcc.Register(registry);
  shortcuts_->compiled_preambles.Register(registry);
  shortcuts_->linker.Register(registry);
  registry.AddGauge("kernix_lessons", "What is being learned from builds for later ones, or waits for that.",
                    [this] { return static_cast<int64_t>(LessonsLeft()); });
  constexpr char kName[] = "kernix_reusable_steps_total";
  constexpr char kHelp[] =
      "Steps whose result can serve other builds: taken from an earlier build, from one at the same time or from "
      "another "
      "node, or run.";
  registry.AddCounter(kName, kHelp, reused_, {{"how", "reused"}});
  registry.AddCounter(kName, kHelp, joined_, {{"how", "joined"}});
  registry.AddCounter(kName, kHelp, upstream_, {{"how", "upstream"}});
  registry.AddCounter(kName, kHelp, run_, {{"how", "run"}});
}

}  // namespace kernix::build
