// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/stop_request.h"

#include <sys/eventfd.h>

namespace kernix::server {

StopRequest::StopRequest() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void StopRequest::Set(std::string_view reason, Duration drain_timeout) {
  const MutexLock lock(mutex_);
  if (reason_) return;
  reason_ = StopReason{.text = std::string(reason), .drain_timeout = drain_timeout};
  eventfd_write(fd_.get(), 1);
}

std::optional<StopReason> StopRequest::Get() const {
  const MutexLock lock(mutex_);
  return reason_;
}

}  // namespace kernix::server
