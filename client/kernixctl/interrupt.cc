// SPDX-License-Identifier: Apache-2.0
#include "client/kernixctl/interrupt.h"

#include <signal.h>

namespace kernix::ctl {
namespace {

volatile sig_atomic_t interrupted = 0;

void NoteInterrupt(int) { interrupted = 1; }

}  // namespace

void CatchInterrupt() {
  struct sigaction action {};
  action.sa_handler = NoteInterrupt;
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
}

bool Interrupted() { return interrupted != 0; }

}  // namespace kernix::ctl
