// SPDX-License-Identifier: Apache-2.0
//
// The folders of daemons: run folders of private daemons that are gone, and this daemon's own files, which somebody may
// remove or replace.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "common/os/env.h"
#include "common/os/unique_fd.h"

namespace kernix::server {

// The folders of private daemons that are gone.

// How long a folder stays after its last change: its log may tell why the daemon ended.
inline constexpr std::chrono::hours kKeepRunFolder{24 * 7};

// Removes the run folders beside `own` whose daemon is gone, whose files are older than kKeepRunFolder, and which
// nobody is about to use. Never a folder with other files. Logs removed folders and failures.
void RemoveDeadRunFolders(Env& env, const std::string& own);

// Wakes the daemon when somebody may have removed or exchanged one of its files.

// By inotify, on each file and on the folders and links of its way, not on the names in these folders: changes beside
// the files wake nobody. Only a hint: some files cannot be watched, and there may be no watch left.
class OwnFilesWatch {
 public:
  explicit OwnFilesWatch(std::vector<std::string> paths);

  // Becomes readable when something has happened; negative if the kernel watches not all of it, for want of watches.
  int events() const { return is_complete_ ? events_.get() : -1; }
  // Has POLLPRI when something was mounted or unmounted.
  int mounts() const { return mounts_.get(); }

  // Forgets what has happened, and watches what the paths lead to now. Check the files after that.
  void Renew();

 private:
  void WatchWay(const std::string& path);

  const std::vector<std::string> paths_;
  const UniqueFd events_;
  const UniqueFd mounts_;
  bool is_complete_ = true;
};

}  // namespace kernix::server
