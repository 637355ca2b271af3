// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/detached.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>

#include "common/wire/kernixd_exit.h"

namespace kernix::server {

void Detach(int report) {
  fcntl(report, F_SETFD, FD_CLOEXEC);
  if (fork() > 0) _exit(kExitOk);  // if there can be no child, this process stays
  setsid();
}

void ReportEnd(int report, int exit_code) {
  const auto code = static_cast<uint8_t>(exit_code);
  (void)send(report, &code, sizeof(code), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace kernix::server
