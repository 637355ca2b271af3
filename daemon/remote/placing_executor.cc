// SPDX-License-Identifier: Apache-2.0
#include "daemon/remote/placing_executor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "common/base/error.h"
#include "common/base/exceptions.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/strings.h"
#include "daemon/remote/remote_executor.h"
#include "daemon/remote/upstream.h"

namespace kernix::remote {
namespace {

using exec::Placement;

// Weighs what the latest action took by a quarter.
Duration Adjusted(Duration expected, Duration took) { return (3 * expected + took) / 4; }

// Whether the engine has failed, and not the action. RESOURCE errors of a command carry the command.
bool IsOfEngine(const absl::Status& status) {
  if (status.ok()) return false;
  const v1::ErrorDetail detail = GetErrorDetail(status);
  if (detail.kind() == v1::ErrorDetail::CANCELLED) return false;
  return detail.kind() != v1::ErrorDetail::RESOURCE || detail.command().empty();
}

// Holds back what an action prints until somebody knows whether this run counts.
class OutputLater final : public exec::ActionObserver {
 public:
  // `observer` may be null.
  explicit OutputLater(exec::ActionObserver* observer) : ActionObserver(observer) {}

  void OnOutput(std::string_view text) override { output_ += text; }

  void Release() {
    if (!output_.empty()) ActionObserver::OnOutput(output_);
  }

 private:
  std::string output_;
};

constexpr char kNoCompilerHere[] = "This node has no compiler, so steps run nowhere else: tell its administrator";
constexpr char kOnlyRemote[] =
    "The settings of this kernixd (\"remote\") let such steps run nowhere else: tell its administrator, or set "
    "\"prefer-remote\", which lets them run on this machine meanwhile";

// RESOURCE: nothing else on this machine helps, so the load ends.
absl::Status NowhereElse(const std::string& step, const absl::Status& why, std::string_view advice) {
  return MakeError(
      v1::ErrorDetail::RESOURCE,
      StrCat("step \"", step, "\" could not run on a worker: ", GetErrorDetail(why).message(), ". ", advice));
}

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string FailureThere(const exec::ActionResult& there) {
  const std::string line = FirstLine(there.output);
  return line.empty() ? StrCat("exit code ", there.exit_code) : line;
}

// 126 and 127: what shells and runners say of a command that they cannot start. Others fail like any command, with a
// message in which the tool, or the system's call that starts it, is not found. A compiler has no reason to say that of
// itself.
bool SeemsToLackTool(std::string_view tool, const exec::ActionResult& there) {
  if (there.exit_code == 126 || there.exit_code == 127) return true;
  if (there.exit_code == 0) return false;
  const std::string line = FirstLine(there.output);
  const bool names_start = absl::StrContains(line, "execv") || absl::StrContains(line, ToAbsl(Basename(tool)));
  return names_start && (absl::StrContains(line, "No such file or directory") || absl::StrContains(line, "not found"));
}

absl::Status LacksTool(std::string_view tool, const exec::ActionResult& there) {
  return MakeError(
      v1::ErrorDetail::RESOURCE,
      StrCat("the worker seems to lack ", tool, " (", FailureThere(there),
             "). Give workers the tools of this node, or those of its toolchain_description, by an image that "
             "upstream.platform names, or ship relocatable ones, such as nvcc's, with upstream.shipped_folders"));
}

}  // namespace

WaitEstimate::Entry WaitEstimate::Enter(const exec::Action& action) {
  const MutexLock lock(mutex_);
  Entry entry{.work = action.work};
  entry.cost = expected_.try_emplace(entry.work, kFirstGuess).first->second;
  ++jobs_;
  cost_ += entry.cost;
  return entry;
}

void WaitEstimate::Leave(const Entry& entry, const absl::StatusOr<exec::ActionResult>& result) {
  const MutexLock lock(mutex_);
  --jobs_;
  cost_ -= entry.cost;
  if (!result.ok()) return;
  Duration& expected = expected_.at(entry.work);
  expected = Adjusted(expected, result->wall);
}

Duration WaitEstimate::Wait() const {
  const MutexLock lock(mutex_);
  if (jobs_ < max_jobs_) return Duration(0);
  return cost_ / max_jobs_;
}

namespace {

// Runs the action, and counts it in `wait` until it ends.
exec::ActionEnd RunIn(exec::Executor& executor, WaitEstimate& wait, const exec::Action& action,
                      const exec::AskersPtr& askers, exec::ActionObserver* observer,
                      const CancellationPtr& cancellation) {
  const WaitEstimate::Entry entry = wait.Enter(action);
  exec::ActionEnd end = CatchExceptions("the step could not be queued",
                                        [&] { return executor.Run(action, askers, observer, cancellation); });
  wait.Leave(entry, end);
  return end;
}

}  // namespace

PlacingExecutor::PlacingExecutor(std::unique_ptr<exec::Executor> local, std::unique_ptr<exec::Executor> remote,
                                 const PlacingOptions& options, WorkerPause& pause)
    : options_(options),
      pause_(pause),
      here_wait_(local->load().max_jobs),
      there_wait_(remote->load().max_jobs),
      local_(std::move(local)),
      remote_(std::move(remote)) {}

void PlacingExecutor::Register(MetricsRegistry& registry) const {
  placed_.Register(registry);
  run_here_instead_.Register(registry);
  registry.AddCounter("kernix_steps_failed_on_workers_alone_total",
                      "Steps that failed on a worker and succeeded here: the worker lacks a tool, or has another one.",
                      failed_there_alone_);
}

exec::ActionEnd PlacingExecutor::Run(const exec::Action& action, const exec::AskersPtr& askers,
                                     exec::ActionObserver* observer, const CancellationPtr& cancellation) {
  const Job job{action, askers, observer, cancellation};
  if (!RunsThere(action)) return RunHere(job);
  if (PlacementOf(action) == Placement::kRemote) return RunOnlyThere(job);
  const WorkerPause::Answer answer = pause_.Ask();
  if (answer != WorkerPause::Answer::kHold) return TryThere(job, answer == WorkerPause::Answer::kProbe);
  run_here_instead_["pause"].Add();
  return RunHere(job);
}

void PlacingExecutor::AskersChanged(const exec::Askers& askers) {
  local_->AskersChanged(askers);
  remote_->AskersChanged(askers);
}

exec::ExecutorLoad PlacingExecutor::load() const {
  exec::ExecutorLoad load = local_->load();
  const exec::ExecutorLoad remote = remote_->load();
  load.running += remote.running;
  load.queued += remote.queued;
  return load;
}

Placement PlacingExecutor::PlacementOf(const exec::Action& action) const {
  return action.needs_worker ? Placement::kRemote : options_.placements.Of(action.work);
}

bool PlacingExecutor::RunsThere(const exec::Action& action) {
  const Placement placement = PlacementOf(action);
  if (placement == Placement::kLocal) return false;
  if (placement == Placement::kRemote) return true;  // the remote executor says what cannot be
  if (placement == Placement::kOverflow && !FlowsOver()) return false;
  if (CheckRunsRemotely(action).ok()) return true;
  run_here_instead_["step"].Add();
  return false;
}

// The queue of the workers is only that of this machine's actions: what others have them do shows in how long these
// take.
bool PlacingExecutor::FlowsOver() const {
  const Duration here = here_wait_.Wait();
  return here > options_.overflow_after && here >= there_wait_.Wait();
}

exec::ActionEnd PlacingExecutor::RunHere(const Job& job) {
  placed_["local"].Add();
  return RunIn(*local_, here_wait_, job.action, job.askers, job.observer, job.cancellation);
}

exec::ActionEnd PlacingExecutor::RunOnlyThere(const Job& job) {
  exec::Action action = job.action;
  action.needs_worker = true;
  const char* const advice = job.action.needs_worker ? kNoCompilerHere : kOnlyRemote;
  const std::string tool = exec::ToolPath(action);
  exec::ActionEnd end = SendThere(std::move(action), job);
  if (IsOfEngine(end.status())) return NowhereElse(job.action.step, end.status(), advice);
  if (end.ok() && SeemsToLackTool(tool, *end)) return NowhereElse(job.action.step, LacksTool(tool, *end), advice);
  return end;
}

exec::ActionEnd PlacingExecutor::TryThere(const Job& job, bool is_probe) {
  exec::Action action = job.action;
  if (is_probe) action.needs_worker = true;  // it is sent, pause or not
  OutputLater output(job.observer);
  exec::ActionEnd there = SendThere(std::move(action), {job.action, job.askers, &output, job.cancellation});
  if (IsOfEngine(there.status())) {
    NoteFallBack(job.action, there.status());
    return RunHere(job);
  }
  if (there.ok() && there->exit_code != 0) {
    run_here_instead_["command"].Add();
    exec::ActionEnd here = RunHere(job);
    if (here.ok() && here->exit_code == 0) NoteDifference(job.action, *there);
    return here;
  }
  if (there.ok() && falling_back_.exchange(false)) Log(LogLevel::kInfo, "workers_work_again");
  output.Release();
  return there;
}

exec::ActionEnd PlacingExecutor::SendThere(exec::Action action, const Job& job) {
  placed_["remote"].Add();
  exec::ActionEnd end = RunIn(*remote_, there_wait_, action, job.askers, job.observer, job.cancellation);
  if (IsNoWorker(end.status())) pause_.NotTaken(GetErrorDetail(end.status()).message());
  if (end.ok() && !end->ran_earlier) pause_.Taken();
  return end;
}

void PlacingExecutor::NoteFallBack(const exec::Action& action, const absl::Status& why) {
  run_here_instead_["engine"].Add();
  if (falling_back_.exchange(true)) return;
  Log(LogLevel::kWarning, "workers_fail",
      {{"step", action.step}, {"error", GetErrorDetail(why).message()}, {"instead", "steps run here"}});
}

void PlacingExecutor::NoteDifference(const exec::Action& action, const exec::ActionResult& there) {
  failed_there_alone_.Add();
  {
    const MutexLock lock(mutex_);
    if (!warned_of_.insert(action.work).second) return;
  }
  Log(LogLevel::kWarning, "worker_lacks_tool",
      {{"step", action.step},
       {"tool", exec::ToolPath(action)},
       {"error", FailureThere(there)},
       {"hint",
        "the step failed on a worker and succeeded here: give workers this node's tools (upstream.platform, "
        "upstream.shipped_folders)"}});
}

}  // namespace kernix::remote
