// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/place_watch.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <utility>

#include "common/base/paths.h"

namespace kernix::server {
namespace {

// A file that loses its name has IN_ATTRIB, even while somebody has it open.
constexpr uint32_t kEvents = IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF | IN_DONT_FOLLOW;

}  // namespace

PlaceWatch::PlaceWatch(std::vector<std::string> paths)
    : paths_(std::move(paths)),
      events_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)),
      mounts_(open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC)) {
  Renew();
}

void PlaceWatch::Renew() {
  std::array<char, 4096> events;
  is_complete_ = true;
  while (read(events_.get(), events.data(), events.size()) > 0) continue;
  for (const std::string& path : paths_) {
    WatchWay(path);
    const std::unique_ptr<char, decltype(&free)> real(realpath(path.c_str(), nullptr), free);
    if (real != nullptr && path != real.get()) WatchWay(real.get());
  }
}

void PlaceWatch::WatchWay(const std::string& path) {
  for (std::string place = path; place.size() > 1; place = Dirname(place)) {
    if (inotify_add_watch(events_.get(), place.c_str(), kEvents) < 0 && errno == ENOSPC) is_complete_ = false;
  }
}

}  // namespace kernix::server
