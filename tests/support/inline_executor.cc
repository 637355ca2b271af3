// SPDX-License-Identifier: Apache-2.0
#include "tests/support/inline_executor.h"

#include <atomic>
#include <utility>

#include "common/base/exceptions.h"

namespace kernix::exec {
namespace {

class InlineExecutor : public Executor {
 public:
  InlineExecutor(Env& env, ActionPlace place) : env_(env), place_(std::move(place)) {}

  ActionEnd Run(const Action& action, const AskersPtr&, ActionObserver* observer,
                const CancellationPtr& cancellation) override {
    ++running_;
    ActionEnd end =
        CatchExceptions("the job ended", [&] { return RunAction(env_, place_, action, observer, cancellation.get()); });
    --running_;
    return end;
  }

  ExecutorLoad load() const override { return {.running = running_, .queued = 0}; }

 private:
  Env& env_;
  const ActionPlace place_;
  std::atomic<int> running_ = 0;
};

}  // namespace

std::unique_ptr<Executor> MakeInlineExecutor(Env& env, ActionPlace place) {
  return std::make_unique<InlineExecutor>(env, std::move(place));
}

}  // namespace kernix::exec
