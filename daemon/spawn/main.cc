// SPDX-License-Identifier: Apache-2.0
//
// kernix-spawn: runs tools for kernixd, each enclosed (common/os/spawn_message.h). kernixd starts it with a socket as
// its standard input, and it ends with that.
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <optional>

#include "common/os/spawn_message.h"
#include "common/os/unique_fd.h"
#include "daemon/spawn/zygote.h"

namespace kernix::spawn {
namespace {

// Whatever kernixd ignores or blocks, tools begin with the usual handling. The C library keeps two signals to itself,
// but the kernel passes on that they are ignored.
void ResetSignals() {
  constexpr size_t kKernelMaskBytes = _NSIG / 8;
  const unsigned long zeros[8] = {};  // as the kernel's sigaction: SIG_DFL, no flags
  for (int number = 1; number < _NSIG; ++number) {
    syscall(SYS_rt_sigaction, number, zeros, nullptr, kKernelMaskBytes);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

bool IsSocket(int fd) {
  int type = 0;
  socklen_t size = sizeof(type);
  return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

int Main() {
  if (!IsSocket(STDIN_FILENO)) {
    std::fputs("kernix-spawn: this is a part of kernixd, which starts it\n", stderr);
    return 2;
  }
  ResetSignals();
  const UniqueFd kernixd(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  const UniqueFd proc(open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC));
  close(STDIN_FILENO);
  open("/dev/null", O_RDONLY);
  Zygotes zygotes(proc.get());
  signal(SIGCHLD, SIG_IGN);
  while (std::optional<Handed> job = ReceiveJob(kernixd.get())) {
    Enclosure enclosure;
    if (Decode(job->message, enclosure)) zygotes.Run(enclosure, job->connection, job->output);
  }
  return 0;
}

}  // namespace
}  // namespace kernix::spawn

int main() { return kernix::spawn::Main(); }
