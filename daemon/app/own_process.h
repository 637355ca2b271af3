// SPDX-License-Identifier: Apache-2.0
//
// What kernixd does about its own process: how it leaves the program whose load started it, settings inherited from
// that program, its memory, and gRPC's log.
#pragma once

#include <string>
#include <vector>

namespace kernix::server {

// Goes on in a child process, whose parent ends, so that the program need not collect it. Must be called before the
// first thread starts. `report`: a socket of the program's. False, and nothing, if it is none.
bool Detach(int report);

// Tells the program, if it still listens, how the detached process ends.
void ReportEnd(int report, int exit_code);

// Settings that kernixd inherits from the program whose load started it. That program may run on one core, at a low
// priority or within limits of its own, but kernixd serves others, too, and compilers have what kernixd has.

// Takes all processors that this process may have, the usual priorities for processor, memory and disk, the usual
// umask, and its limits as far as it may raise them. Returns what remains, in words. Call it before the first thread
// starts.
std::vector<std::string> ShedInherited();

// The memory of this process.

// Makes all threads allocate from one arena. Must be called before the first thread starts.
void LimitArenas();

// Gives back to the system what the process does not need while it is idle: memory that was freed, and its hold on the
// code of the program and its libraries, which stays in the system's page cache. A debugger loses its breakpoints.
void ReturnMemory();

// Routes gRPC's log into ours.

// Process-wide. Logs gRPC's errors as warnings: a failure of one connection is not an error of the daemon.
void RouteGrpcLog();

}  // namespace kernix::server
