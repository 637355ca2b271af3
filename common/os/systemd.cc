// SPDX-License-Identifier: Apache-2.0
#include "common/os/systemd.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "common/base/strings.h"
#include "common/os/unique_fd.h"

namespace kernix {
namespace {

std::string_view Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

// 0 if there is none.
int NumberIn(const char* variable) {
  int number = 0;
  return absl::SimpleAtoi(ToAbsl(Variable(variable)), &number) && number > 0 ? number : 0;
}

bool HasOption(int fd, int option, int wanted) {
  int value = 0;
  socklen_t size = sizeof(value);
  return getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 && value == wanted;
}

}  // namespace

void NotifySystemd(std::string_view state) {
  const std::string_view name = Variable("NOTIFY_SOCKET");
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  const bool is_address = name.starts_with('/') || name.starts_with('@');
  if (!is_address || name.size() >= sizeof(address.sun_path)) return;
  name.copy(address.sun_path, name.size());
  if (name.front() == '@') address.sun_path[0] = '\0';  // the abstract namespace
  const UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  sendto(fd.get(), state.data(), state.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address), length);
}

int TakePassedDescriptors() {
  const int count = NumberIn("LISTEN_PID") == getpid() ? NumberIn("LISTEN_FDS") : 0;
  for (const char* name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) unsetenv(name);
  for (int i = 0; i < count; ++i) fcntl(kFirstPassedDescriptor + i, F_SETFD, FD_CLOEXEC);
  return count;
}

bool ListensAtUnixSocket(int fd) {
  return HasOption(fd, SO_DOMAIN, AF_UNIX) && HasOption(fd, SO_TYPE, SOCK_STREAM) && HasOption(fd, SO_ACCEPTCONN, 1);
}

}  // namespace kernix
