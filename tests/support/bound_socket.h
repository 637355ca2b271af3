// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>

#include "common/os/unique_fd.h"
#include "common/os/unix_socket.h"

namespace kernix {

// A Unix socket of `type` at `path`, where nobody listens yet.
inline UniqueFd BoundSocket(const std::string& path, int type = SOCK_STREAM) {
  UniqueFd fd(socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  const SocketAddress address(path);
  EXPECT_EQ(bind(fd.get(), address.get(), address.size()), 0) << path;
  return fd;
}

}  // namespace kernix
