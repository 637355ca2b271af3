// SPDX-License-Identifier: Apache-2.0
//
// For code that the application's signal handlers must not interrupt.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace kernix {

// During its lifetime, this thread, and threads that it starts, receive no signals.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &saved_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &saved_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t saved_;
};

}  // namespace kernix
