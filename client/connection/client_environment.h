// SPDX-License-Identifier: Apache-2.0
//
// The client's inputs from its process and machine. Injected, so that a test can set the user and the places.
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
  // How long a daemon may take to answer a lookup. If it takes longer, for example when it first examines a compiler,
  // the client requests a load instead.
  std::chrono::milliseconds lookup_patience{1'000};
};

}  // namespace kernix
