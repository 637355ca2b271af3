// SPDX-License-Identifier: Apache-2.0
//
// What this process holds of the machine's memory.
#pragma once

namespace kernix::server {

// Makes all threads allocate from one arena. Must be called before the first thread starts.
void LimitArenas();

// Gives back to the system what the process does not need while it is idle: memory that was freed, and its hold on the
// code of the program and its libraries, which stays in the system's page cache. A debugger loses its breakpoints.
void ReturnMemory();

}  // namespace kernix::server
