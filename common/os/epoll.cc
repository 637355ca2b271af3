// SPDX-License-Identifier: Apache-2.0
#include "common/os/epoll.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "common/base/log.h"

namespace kernix::posix {

int AwaitEvents(int epoll, std::span<epoll_event> events, int timeout_ms) {
  const int count = epoll_wait(epoll, events.data(), static_cast<int>(events.size()), timeout_ms);
  if (count >= 0) return count;
  if (errno == EINTR) return 0;
  Log(LogLevel::kError, "epoll_failed", {{"descriptor", epoll}, {"error", std::strerror(errno)}});
  std::abort();
}

}  // namespace kernix::posix
