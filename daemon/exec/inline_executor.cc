// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <utility>

#include "daemon/exec/executor.h"

namespace kernix::exec {
namespace {

class InlineExecutor : public Executor {
 public:
  InlineExecutor(Env& env, std::string scratch_directory) : env_(env), scratch_(std::move(scratch_directory)) {}

  void Submit(Action action, ActionObserver* observer, CancellationPtr cancellation, ActionDone done) override {
    ++running_;
    absl::StatusOr<ActionResult> result = RunAction(env_, scratch_, action, observer, cancellation.get());
    --running_;
    done(std::move(result));
  }

  ExecutorLoad load() const override { return {.running = running_, .queued = 0}; }

 private:
  Env& env_;
  const std::string scratch_;
  std::atomic<int> running_ = 0;
};

}  // namespace

std::unique_ptr<Executor> MakeInlineExecutor(Env& env, std::string scratch_directory) {
  return std::make_unique<InlineExecutor>(env, std::move(scratch_directory));
}

}  // namespace kernix::exec
