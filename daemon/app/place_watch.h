// SPDX-License-Identifier: Apache-2.0
//
// Wakes the daemon when somebody may have removed or exchanged one of its files.
#pragma once

#include <string>
#include <vector>

#include "common/os/unique_fd.h"

namespace kernix::server {

// By inotify, on each file and on the folders and links of its way, not on the names in these folders: what others do
// beside the files wakes nobody. A hint only: some files cannot be watched, and no watch may be had.
class PlaceWatch {
 public:
  explicit PlaceWatch(std::vector<std::string> paths);

  // Becomes readable when something has happened; negative if the kernel watches not all of it, for want of watches.
  int events() const { return is_complete_ ? events_.get() : -1; }
  // Has POLLPRI when something was mounted or unmounted.
  int mounts() const { return mounts_.get(); }

  // Forgets what has happened, and watches what is at these places now. Look at the files after that.
  void Renew();

 private:
  void WatchWay(const std::string& path);

  const std::vector<std::string> paths_;
  const UniqueFd events_;
  const UniqueFd mounts_;
  bool is_complete_ = true;
};

}  // namespace kernix::server
