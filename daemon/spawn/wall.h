// SPDX-License-Identifier: Apache-2.0
//
// The wall: what a process sees of the machine. A zygote's wall has the toolchain, and no other process, network or
// user's file. Each of its jobs adds a wall of its own, with the job's folders.
//
// A file has the path that it has outside, so that tools print and record the same names with and without a wall.
// Unless it shows the whole machine, it has no /proc but for one name: /proc/self/cwd is the job's folder, since
// compilers record $PWD (see toolchain::Toolchain::environment).
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <vector>

#include "common/os/spawn_message.h"

namespace kernix::spawn {

// Throws std::system_error with errno's text unless `ok`: "cannot mount /usr: Operation not permitted".
inline void Require(bool ok, const std::string& what) {
  if (!ok) throw std::system_error(errno, std::generic_category(), "cannot " + what);
}

// What any tool of any toolchain needs, in addition to Enclosure::readable.
std::vector<std::string> SystemFiles();

// Devices that a tool may read and write.
std::vector<std::string> SystemDevices();

// Flags for clone(2) of a zygote, and of its jobs.
int ZygoteNamespaces();
int JobNamespaces();

// Makes the calling process, which was cloned with ZygoteNamespaces(), see `enclosure` alone, as this user and group.
// Throws std::system_error.
void EnterWall(const Enclosure& enclosure, uid_t user, gid_t group);

// In a wall, where a job that has no writable folder finds an empty one of its own: a folder that each machine has, and
// that no tool needs.
inline constexpr char kTemporaryFolder[] = "/sys";

// Makes the calling process, which was cloned with JobNamespaces() by a process in a wall, see the folders of
// `command`, too, and write to its one writable folder alone. Throws std::system_error.
void EnterJob(const Enclosure& enclosure, const Command& command);

}  // namespace kernix::spawn
