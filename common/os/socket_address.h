// SPDX-License-Identifier: Apache-2.0
//
// The address of a Unix socket.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <string_view>

#include "absl/status/status.h"
#include "common/base/paths.h"
#include "common/base/strings.h"

namespace kernix {

static_assert(kMaxSocketPath == sizeof(sockaddr_un::sun_path) - 1);

// kInvalidArgument if `path` is too long for a socket.
inline absl::Status CheckSocketPath(std::string_view path) {
  if (path.size() <= kMaxSocketPath) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("the socket's path is ", path.size(),
                                           " bytes long, but the system allows at most ", kMaxSocketPath,
                                           ": choose a shorter one: ", path));
}

// A path in the form that the socket calls need.
class SocketAddress {
 public:
  // `path` must have passed CheckSocketPath().
  explicit SocketAddress(std::string_view path) {
    address_.sun_family = AF_UNIX;
    std::copy_n(path.begin(), std::min(path.size(), kMaxSocketPath), address_.sun_path);
  }

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address_); }
  socklen_t size() const { return sizeof address_; }

 private:
  sockaddr_un address_{};
};

}  // namespace kernix
