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
#include "common/os/env.h"
#include "daemon/exec/action.h"
#include "daemon/exec/askers.h"

namespace kernix::exec {

// A command that fails is a result with a nonzero exit code. An error means that the command could not run to its end:
// RESOURCE (no space, no memory, time limit, too much output; also when the tool itself reports one of these),
// CANCELLED, or TOOLCHAIN (the tool cannot be started). A RESOURCE error of a command carries its output and its
// command line.
using ActionEnd = absl::StatusOr<ActionResult>;

struct ExecutorLoad {
  int running = 0;
  int queued = 0;
  int max_jobs = 1;  // most jobs that may run on this machine at once; constant for an executor
};

// Thread-safe.
class Executor {
 public:
  virtual ~Executor() = default;

  // Waits for the turn of `action`, for which `askers` wait, and runs it to its end. Blocks. `observer` and
  // `cancellation` may be null. Throws only if there is no memory for another action.
  virtual ActionEnd Run(const Action& action, const AskersPtr& askers, ActionObserver* observer,
                        const CancellationPtr& cancellation) = 0;

  // Must be called when somebody has joined or left `askers`: their actions that wait change positions.
  virtual void AskersChanged(const Askers&) {}

  // Both counts exclude an action by the time its Run() returns.
  virtual ExecutorLoad load() const = 0;
};

// Where and how actions run, and their limits.
struct RunOptions {
  std::string scratch_directory;
  // Limit for each file that a command writes, and for all outputs of an action together. 0: no limit.
  uint64_t max_output_bytes = 0;
  uint64_t max_process_memory_bytes = 0;  // address space of each process of a command. 0: no limit
  int max_processes = 0;                  // processes of one command at one time. 0: no limit
  int niceness = 0;                       // of commands, above that of this process (see nice(1))
};

// Runs one action in a new folder below the scratch directory: stages the inputs, runs the command, reads the outputs
// and removes the folder. The local executor calls it for each action. Blocks. `observer` and
// `cancellation` may be null.
ActionEnd RunAction(Env& env, const RunOptions& options, const Action& action, ActionObserver* observer,
                    Cancellation* cancellation);

// Runs one action to its end, in the caller's thread. `observer` may be null.
using ActionRunner =
    std::function<ActionEnd(const Action& action, ActionObserver* observer, Cancellation* cancellation)>;

// Serves users in turn (see FairQueue), and each user's actions by rank. An action has the best of the positions that
// its askers give it. The weight of an action is the larger of its shares of the pool's jobs and of the pool's memory
// (0: any number of bytes). The next action starts when its jobs and its memory estimate fit beside the running
// actions; until then, no other action overtakes it. An action that exceeds a whole limit runs alone. The destructor
// cancels all queued and running actions and waits for them. Waiting actions learn their positions once in
// `between_tellings` at most. `env`, the clock, must outlive the executor.
std::unique_ptr<Executor> MakePoolExecutor(Env& env, ActionRunner run, int max_jobs, uint64_t memory_budget_bytes,
                                           Duration between_tellings = Duration(100));

struct LocalExecutorOptions {
  RunOptions run;
  int max_jobs = 0;                  // 0: the number of processors that this process may use
  uint64_t memory_budget_bytes = 0;  // 0: three quarters of the memory of the machine (or of the cgroup)
};

// A pool that runs actions on this machine.
std::unique_ptr<Executor> MakeLocalExecutor(Env& env, LocalExecutorOptions options);

}  // namespace kernix::exec
