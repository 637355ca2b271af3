// SPDX-License-Identifier: Apache-2.0
//
// What a tool may not do, whatever it sees. Each of these holds for the calling thread and for all that it starts, for
// ever.
#pragma once

#include <string>
#include <vector>

#include "common/os/spawn_message.h"

namespace kernix::spawn {

// The system calls that tools need, as a program for the kernel. Made once, since that takes longer than a job. Throws
// std::system_error.
class SystemCallFilter {
 public:
  // Below a wall, calls that change a file's mode or times succeed and do nothing.
  explicit SystemCallFilter(Rung rung);

  // From now on, every other system call fails with ENOSYS, as on a kernel that lacks it.
  void Apply() const;

 private:
  std::vector<char> program_;  // of struct sock_filter
};

// No capability, and no way to get one. Throws std::system_error.
void DropPrivileges();

// Whether this kernel has Landlock.
bool HasLandlock();

// The files of the system, of `enclosure`, and the folders of `command` are all that can be read, and the folder
// `writable` is all that can be written. As far as the kernel can, forbids network and signals to others, too. Throws
// std::system_error.
void RestrictFiles(const Enclosure& enclosure, const Command& command, const std::string& writable);

}  // namespace kernix::spawn
