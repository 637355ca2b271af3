// SPDX-License-Identifier: Apache-2.0
//
// What the client takes from its process and machine. Injected, so that a test can say who and where it is.
#pragma once

#include <unistd.h>

#include <chrono>
#include <string>

#include "common/base/paths.h"
#include "common/os/env.h"
#include "common/os/places.h"

namespace kernix {

struct ClientEnvironment {
  Env* env = &Env::Posix();
  GetEnv get_env = ProcessGetEnv;
  uid_t uid = geteuid();
  std::string service_socket = kServiceSocket;
  // What a daemon gets to answer a lookup. One that takes longer, as when it first looks at a compiler, is asked for a
  // load.
  std::chrono::milliseconds lookup_patience{1'000};
};

}  // namespace kernix
