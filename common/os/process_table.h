// SPDX-License-Identifier: Apache-2.0
//
// The parent-child relations of this machine's processes.
#pragma once

#include <sys/types.h>

#include <vector>

namespace kernix::posix {

// `leader`, the processes in its process group, and all their descendants, also those in other groups, as /proc shows
// them now. A process that has left the group and whose parent has ended is not found. Empty if /proc cannot be read.
std::vector<pid_t> Family(pid_t leader);

// The size of that family, without zombies. Uses a table that is at most a fraction of a second old. On machines with
// so many processes that reading the table is slow, it may be older, so that reading takes only a small part of the
// time. Thread-safe: all callers share the table.
int CountFamily(pid_t leader);

}  // namespace kernix::posix
