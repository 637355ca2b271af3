// SPDX-License-Identifier: Apache-2.0
//
// What kernixd has of the program whose load started it. That program may run on one core, at a low priority or within
// limits of its own, but kernixd serves others, too, and compilers have what kernixd has.
#pragma once

#include <string>
#include <vector>

namespace kernix::server {

// Takes all processors that this process may have, the usual priorities for processor, memory and disk, the usual
// umask, and its limits as far as it may raise them. Returns what remains, in words. Call it before the first thread
// starts.
std::vector<std::string> ShedInherited();

}  // namespace kernix::server
