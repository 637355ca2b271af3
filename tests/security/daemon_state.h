// SPDX-License-Identifier: Apache-2.0
//
// What a running kernixd shows of itself from outside.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace kernix::security {

// A line "VmHWM: 123 kB" of a process' status, in bytes. 0: there is none.
uint64_t StatusBytes(const std::string& pid, const std::string& name);

// The service's processes but `daemon` and what descends from nobody of its: compilers.
std::vector<std::string> Compilers(pid_t daemon);

// How many of `user`'s loads have ended, by kernixd's log.
int LoadsEnded(const std::string& log, uid_t user);

}  // namespace kernix::security
