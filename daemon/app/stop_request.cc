// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/stop_request.h"

#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "common/base/strings.h"
#include "common/os/posix_error.h"

namespace kernix::server {
namespace {

constexpr std::pair<int, std::string_view> kSignals[] = {{SIGTERM, "SIGTERM"}, {SIGINT, "SIGINT"}, {SIGHUP, "SIGHUP"}};

}  // namespace

absl::StatusOr<StopSignals> StopSignals::Take() {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a limit that was inherited: a write beyond it says so
  sigset_t signals;
  sigemptyset(&signals);
  for (const auto& [number, name] : kSignals) sigaddset(&signals, number);
  const int blocked = pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  if (blocked != 0) return ErrnoStatus(blocked, "block", "signals");
  UniqueFd fd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.ok()) return ErrnoStatus(errno, "make", "a signalfd");
  return StopSignals(std::move(fd));
}

std::optional<std::string> StopSignals::Next() {
  signalfd_siginfo info{};
  if (read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  for (const auto& [number, name] : kSignals) {
    if (info.ssi_signo == static_cast<uint32_t>(number)) return std::string(name);
  }
  return std::nullopt;
}

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
