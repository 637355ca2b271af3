// SPDX-License-Identifier: Apache-2.0
//
// Runs actions.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/cancellation.h"
#include "common/base/user_id.h"
#include "common/os/env.h"
#include "daemon/exec/action.h"

namespace kernix::exec {

// A command that failed is a result with its exit code. An error is for what kept it from running to its end: RESOURCE
// (no space, no memory, time limit, more output than is allowed; also where the tool itself reports so), CANCELLED,
// TOOLCHAIN (the tool cannot be started). RESOURCE errors of a command carry what it printed and its command line.
using ActionDone = std::function<void(absl::StatusOr<ActionResult>)>;

struct ExecutorLoad {
  int running = 0;
  int queued = 0;
  int max_jobs = 1;  // that may run at once: a constant of the executor
  // What the actions that run at once may need together: a constant, too. 0: no limit is known.
  uint64_t memory_budget_bytes = 0;
};

// Thread-safe.
class Executor {
 public:
  virtual ~Executor() = default;

  // Queues `action` of `user` and returns. `done` is called exactly once, from a thread of the executor (the inline
  // executor, and one that is being destroyed: before Submit() returns). `observer` and `cancellation` may be null;
  // `observer` must live until `done`.
  virtual void Submit(Action action, UserId user, ActionObserver* observer, CancellationPtr cancellation,
                      ActionDone done) = 0;

  // An action has left both counts when its `done` is called.
  virtual ExecutorLoad load() const = 0;
};

// Where and within which bounds actions run.
struct ActionPlace {
  std::string scratch_directory;
  // Of each file that a command makes, and of all outputs of an action together. 0: none.
  uint64_t max_output_bytes = 0;
  uint64_t max_process_memory_bytes = 0;  // of address space, for each process of a command. 0: none
  int max_processes = 0;                  // of one command, at once. 0: any number
};

// Runs one action in a new folder below the scratch directory: stages the inputs, runs the command, reads the outputs,
// removes the folder. What both executors below do for each action. Blocks. `observer` and `cancellation` may be null.
absl::StatusOr<ActionResult> RunAction(Env& env, const ActionPlace& place, const Action& action,
                                       ActionObserver* observer, Cancellation* cancellation);

// In the caller's thread: for tests of what stands above.
std::unique_ptr<Executor> MakeInlineExecutor(Env& env, ActionPlace place);

struct LocalExecutorOptions {
  ActionPlace place;
  int max_jobs = 0;                  // 0: number of processors that this process may use
  uint64_t memory_budget_bytes = 0;  // 0: three quarters of what the machine (or the cgroup) has
};

// A pool of threads that serves users in turn (see FairQueue), and each user's actions first come first served. A turn
// is worth the larger of an action's shares of the pool's jobs and of its memory. The next action starts when its jobs
// and its memory estimate fit into what the running ones leave of the two limits, and no other one overtakes it
// meanwhile; one that is larger than a whole limit runs alone. Destruction cancels what is queued and running and
// waits.
std::unique_ptr<Executor> MakeLocalExecutor(Env& env, LocalExecutorOptions options);

}  // namespace kernix::exec
