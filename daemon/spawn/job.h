// SPDX-License-Identifier: Apache-2.0
//
// One job: a process that starts a tool, watches it, and reports its end. All of the tool's processes end before it
// does.
#pragma once

#include "common/os/spawn_message.h"
#include "common/os/unique_fd.h"
#include "daemon/spawn/restrictions.h"

namespace kernix::spawn {

// What all jobs of a zygote have.
struct JobParts {
  const Enclosure& enclosure;
  const SystemCallFilter* filter;  // null: none
  int proc;                        // a descriptor of /proc
  int cgroup;                      // from PrepareCgroup(), or -1
};

// Reads the command from `connection`, runs it with its output to `output`, and reports its end. Must be called in a
// process of its own, which was cloned with JobNamespaces() if the enclosure is a wall.
void RunJob(const JobParts& parts, const UniqueFd& connection, UniqueFd output);

}  // namespace kernix::spawn
