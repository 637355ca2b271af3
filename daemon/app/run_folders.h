// SPDX-License-Identifier: Apache-2.0
//
// The folders of private daemons that are gone.
#pragma once

#include <chrono>
#include <string>

#include "common/os/env.h"

namespace kernix::server {

// How long a folder stays after its last change: its log may tell why the daemon ended.
inline constexpr std::chrono::hours kKeepRunFolder{24 * 7};

// Removes those folders beside `own` (see DaemonPlace) whose daemon is gone, whose files are older than
// kKeepRunFolder, and which nobody is about to use. Never a folder that holds anything else. Logs what it removes and
// what it cannot remove.
void RemoveDeadRunFolders(Env& env, const std::string& own);

}  // namespace kernix::server
