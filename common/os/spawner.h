// SPDX-License-Identifier: Apache-2.0
//
// This process's kernix-spawn, the program that runs tools. It starts with the first tool, and ends with this process.
// Or it is a service of its own, so that this process needs none of the rights that enclosing takes.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/os/env.h"
#include "common/os/spawn_message.h"
#include "common/os/unique_fd.h"

namespace kernix::spawn {

// Thread-safe.
class Spawner {
 public:
  // The only one of this process. Never destroyed.
  static Spawner& Get();

  // The program to start, in the place of one that runs: by default, kernix-spawn in the folder of this process's own
  // program.
  void SetProgram(std::string path);
  // The socket of a service to connect to instead.
  void SetSocket(std::string path);

  // From now on, no job runs on a lower rung, whatever its enclosure says. On this one, `shows_machine` lets all jobs
  // read what kernix-spawn's user may read, as that user's own compilers do.
  void SetFloor(Rung rung, bool shows_machine);

  // Hands a job over; the result is its connection, which takes the Command. A kernix-spawn that has ended is started
  // again. kNotFound or kPermissionDenied if there is no such program.
  absl::StatusOr<UniqueFd> Submit(const Enclosure& enclosure, int output);

 private:
  Spawner();

  Enclosure WithFloor(Enclosure enclosure) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Start() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Connect() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  std::string program_ ABSL_GUARDED_BY(mutex_);
  std::string service_ ABSL_GUARDED_BY(mutex_);  // its socket; empty: none
  UniqueFd socket_ ABSL_GUARDED_BY(mutex_);      // its end closes, or it was not started: see HandOver()
  pid_t pid_ ABSL_GUARDED_BY(mutex_) = 0;
  Rung floor_ ABSL_GUARDED_BY(mutex_) = Rung::kNone;
  bool shows_machine_ ABSL_GUARDED_BY(mutex_) = false;
};

// The folders that a tool needs to see when it runs enclosed, beside those of the system (daemon/spawn/README.md): the
// installations of `programs` (a program's own files lie below the folder that contains its "bin"), by the paths
// given and behind their links, and the folders that `environment` lists. Sorted. All of /usr is there for all tools,
// and is left out.
std::vector<std::string> ToolFolders(Env& env, const std::vector<std::string>& programs,
                                     const std::map<std::string, std::string>& environment);

}  // namespace kernix::spawn
