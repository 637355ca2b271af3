// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/detached.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>

#include "common/wire/kernixd_exit.h"

namespace kernix::server {

bool Detach(int report) {
  struct stat info {};
  if (fstat(report, &info) != 0 || !S_ISSOCK(info.st_mode)) return false;
  fcntl(report, F_SETFD, FD_CLOEXEC);
  const pid_t child = fork();
  if (child != 0) _exit(child > 0 ? kExitOk : kExitFailure);
  setsid();
  return true;
}

void ReportEnd(int report, int exit_code) {
  const auto code = static_cast<uint8_t>(exit_code);
  (void)send(report, &code, sizeof(code), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace kernix::server
