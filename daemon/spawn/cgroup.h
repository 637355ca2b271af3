// SPDX-License-Identifier: Apache-2.0
//
// A cgroup (version 2) for each job: what the processes of one job use together has a bound of its own, so that a job
// takes no memory from the others. Only a service has cgroups to make: systemd delegates one to kernix-spawn@.service.
// https://systemd.io/CGROUP_DELEGATION
#pragma once

#include <sys/types.h>

#include <string>

#include "common/os/spawn_message.h"
#include "common/os/unique_fd.h"

namespace kernix::spawn {

// Prepares this process's cgroup, which must be delegated to its user, for those of jobs: moves the process into a
// child of it, so that it may have children with limits. Returns a descriptor of it. Throws std::exception.
UniqueFd PrepareCgroup();

// Not thread-safe.
class JobCgroup {
 public:
  // `parent`: from PrepareCgroup(); -1: the job has no cgroup, and starts in this process's. Throws std::system_error.
  JobCgroup(int parent, const Command& command);
  JobCgroup(const JobCgroup&) = delete;
  JobCgroup& operator=(const JobCgroup&) = delete;
  // All of its processes must have ended.
  ~JobCgroup();

  // As fork(), but the child is in the cgroup. The process must have one thread.
  pid_t Fork() const;

  // Whether its processes have reached the limit of their memory together. Then the kernel kills them all.
  bool RanOutOfMemory() const;

  // Kills all of its processes, where the kernel can (Linux 5.14).
  void Kill() const;

 private:
  const int parent_;
  std::string name_;
  UniqueFd folder_;
};

}  // namespace kernix::spawn
