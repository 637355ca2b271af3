// SPDX-License-Identifier: Apache-2.0
//
// A path in the form that the socket calls need.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "common/base/paths.h"

namespace kernix::server {

static_assert(kMaxSocketPath == sizeof(sockaddr_un::sun_path) - 1);

class SocketAddress {
 public:
  // `path` must be no longer than kMaxSocketPath.
  explicit SocketAddress(std::string_view path) {
    address_.sun_family = AF_UNIX;
    std::copy_n(path.begin(), std::min(path.size(), kMaxSocketPath), address_.sun_path);
  }

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address_); }
  socklen_t size() const { return sizeof address_; }

 private:
  sockaddr_un address_{};
};

}  // namespace kernix::server
