// SPDX-License-Identifier: Apache-2.0
//
// Runs actions on the builders of an engine.
//
// A builder gets the action as this machine would run it: placeholders are replaced, the links to tools become symbolic
// links of the input root, to the same absolute paths as here. So it must have the same tools in the same places (an
// image, or mounts of the engine's sandbox), or the tools travel with the action: a link to a shipped folder becomes
// the folder itself. That takes tools that work in any place, such as nvcc's. The engine's digest of such an action is
// not the one of action_digest.h, in which no place of a machine stands.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/os/env.h"
#include "daemon/exec/executor.h"
#include "daemon/remote/builder_pause.h"
#include "daemon/remote/upstream.h"

namespace kernix::remote {

struct RemoteExecutorOptions {
  int max_jobs = 16;                               // that run on the engine or wait for it; as many threads
  Duration queue_limit = std::chrono::minutes(2);  // how long an action may wait for a builder; 0: as long as it runs
  std::map<std::string, std::string> platform;     // what a builder must have: "container-image", "OSFamily", ...
  std::vector<std::string> shipped_folders;        // absolute, of tools that builders do not have
  uint64_t max_output_bytes = 0;                   // of all outputs of an action, and of what it prints. 0: no limit
  // Takes nothing from the engine's own cache of results, which may hold what anybody has written there.
  bool run_anew = false;
  // While it is on, an action that does not need a builder is not sent, though it was submitted before. Null: none.
  const BuilderPause* pause = nullptr;
};

// OK, or why a builder cannot run this action: its command needs the absolute path of its root, which differs between
// builders, or a shell would interpret a word of it.
absl::Status CheckRunsRemotely(const exec::Action& action);

// Errors of ActionDone, besides those of Executor: UNREACHABLE (IsNoBuilder() too), INVALID_REQUEST and INTERNAL as
// Upstream has them, and FAILED_PRECONDITION of CheckRunsRemotely(), in a pause, or of an engine that runs nothing, or
// takes no absolute links. None of them says anything of the action: another executor may run it. An observer hears of
// output when the command has ended. `env` and `upstream` must outlive the executor.
std::unique_ptr<exec::Executor> MakeRemoteExecutor(Env& env, Upstream& upstream, RemoteExecutorOptions options);

}  // namespace kernix::remote
