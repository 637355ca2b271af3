// SPDX-License-Identifier: Apache-2.0
#include "tests/support/inline_executor.h"

#include <atomic>
#include <utility>

#include "common/base/exceptions.h"

namespace kernix::exec {
namespace {

class InlineExecutor : public Executor {
 public:
  InlineExecutor(Env& env, RunOptions options) : env_(env), options_(std::move(options)) {}

  ActionEnd Run(const Action& action, const AskersPtr&, ActionObserver* observer,
                const CancellationPtr& cancellation) override {
    ++running_;
    ActionEnd end = CatchExceptions("the job ended",
                                    [&] { return RunAction(env_, options_, action, observer, cancellation.get()); });
    --running_;
    return end;
  }

  ExecutorLoad load() const override { return {.running = running_, .queued = 0}; }

 private:
  Env& env_;
  const RunOptions options_;
  std::atomic<int> running_ = 0;
};

}  // namespace

std::unique_ptr<Executor> MakeInlineExecutor(Env& env, RunOptions options) {
  return std::make_unique<InlineExecutor>(env, std::move(options));
}

}  // namespace kernix::exec
