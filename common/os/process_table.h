// SPDX-License-Identifier: Apache-2.0
//
// Who has started whom, of the processes of this machine.
#pragma once

#include <sys/types.h>

#include <vector>

namespace kernix::posix {

// `leader`, what is in its process group, and what descends from any of those, also in groups of its own; as /proc says
// now. Not found is who has left the group and whose parent has ended. Empty when /proc cannot be read.
std::vector<pid_t> Family(pid_t leader);

// How many those are, without the dead that wait for their parent. From a table that is not older than a fraction of a
// second (or, on machines with so many processes that reading it takes long, of which a small part of the time goes
// into reading it). Thread-safe: all who ask share it.
int CountFamily(pid_t leader);

}  // namespace kernix::posix
