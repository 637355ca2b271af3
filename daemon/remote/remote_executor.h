// SPDX-License-Identifier: Apache-2.0
//
// Runs actions on the workers of an engine.
//
// A worker gets the action as this machine would run it: placeholders are replaced, the links to tools become symbolic
// links of the input root, to the same absolute paths as here. So it must have the same tools in the same places (an
// image, or mounts of the engine's sandbox), or the tools travel with the action: a link to a shipped folder becomes
// the folder itself. That takes tools that work in any place, such as nvcc's. The engine's digest of such an action
// differs from that of action_digest.h, which covers no path of a machine.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/os/env.h"
#include "common/os/file_identity.h"
#include "daemon/exec/blob.h"
#include "daemon/exec/executor.h"
#include "daemon/remote/circuit_breaker.h"
#include "daemon/remote/upstream.h"

namespace kernix::remote {

struct RemoteExecutorOptions {
  int max_jobs = 16;                               // that run on the engine or wait for it; as many threads
  Duration queue_limit = std::chrono::minutes(2);  // how long an action may wait for a worker; 0: as long as it runs
  std::map<std::string, std::string> platform;     // what a worker must have: "container-image", "OSFamily", ...
  std::vector<std::string> shipped_folders;        // absolute, of tools that workers do not have
  uint64_t max_output_bytes = 0;                   // of all outputs of an action, and of what it prints. 0: no limit
  // Takes nothing from the engine's own cache of results, which may hold anybody's results.
  bool run_anew = false;
  // While it is on, an action that does not need a worker is not sent, though it was submitted before. Null: none.
  const WorkerPause* pause = nullptr;
};

// OK, or why a worker cannot run this action: its command needs the absolute path of its root, which differs between
// workers, or a shell would interpret a word of it.
absl::Status CheckRunsRemotely(const exec::Action& action);

// Errors of ActionDone, besides those of Executor: UNREACHABLE (IsNoWorker() too), INVALID_REQUEST and INTERNAL as
// Upstream has them, and FAILED_PRECONDITION of CheckRunsRemotely(), in a pause, or of an engine that runs nothing, or
// takes no absolute links. None of them says anything of the action: another executor may run it. An observer hears of
// output when the command has ended. `env` and `upstream` must outlive the executor.
std::unique_ptr<exec::Executor> MakeRemoteExecutor(Env& env, Upstream& upstream, RemoteExecutorOptions options);

// Folders of tools that workers do not have: they travel with an action, as part of its input root, and to an engine
// only once.

// A folder as an engine knows it.
struct ShippedFolder {
  exec::BlobDigest digest;                           // of its Directory
  std::map<exec::BlobDigest, std::string> messages;  // the Directories
  std::map<exec::BlobDigest, std::string> files;     // where the files lie on this machine
  std::vector<WatchedFile> seen;                     // all that it was made from
};

// Thread-safe.
class ShippedFolders {
 public:
  // `env` must outlive it. `folders`: the absolute paths of those that may be shipped.
  ShippedFolders(Env& env, std::vector<std::string> folders) : env_(env), folders_(std::move(folders)) {}

  // Whether `path` is one of the folders, or lies in one.
  bool Ships(const std::string& path) const;

  // The folder at `path`, which Ships(). Reads all its files the first time, and again if one has changed. A link that
  // stays in the folder remains one, any other is replaced by the file that it leads to. An error if something cannot
  // be read, or is neither file nor folder.
  absl::StatusOr<std::shared_ptr<const ShippedFolder>> Get(const std::string& path);

 private:
  Env& env_;
  const std::vector<std::string> folders_;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<const ShippedFolder>> known_ ABSL_GUARDED_BY(mutex_);  // by path
};

}  // namespace kernix::remote
