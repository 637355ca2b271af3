// SPDX-License-Identifier: Apache-2.0
//
// The functions of libsystemd that kernixd calls, for programs that are linked from archives, because distributions
// ship no archive of that library. The protocols behind the functions are documented and stable.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

#include "common/os/unique_fd.h"

namespace kernix {
namespace {

std::string_view Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

// All of `text` as a positive number.
std::optional<int> PositiveNumber(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number <= 0) return std::nullopt;
  return number;
}

// Returns 0 or a negative errno. `name` begins with '/', or with '@' for the abstract namespace.
int SendTo(std::string_view name, std::string_view message) {
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  if (name.size() < 2 || (name[0] != '/' && name[0] != '@')) return -EAFNOSUPPORT;
  if (name.size() >= sizeof(address.sun_path)) return -E2BIG;
  name.copy(address.sun_path, name.size());
  if (name[0] == '@') address.sun_path[0] = '\0';
  const UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.ok()) return -errno;
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  const ssize_t sent = sendto(fd.get(), message.data(), message.size(), MSG_NOSIGNAL,
                              reinterpret_cast<const sockaddr*>(&address), length);
  return sent < 0 ? -errno : 0;
}

// How many descriptors systemd passed to this process.
int PassedDescriptors() {
  const std::optional<int> pid = PositiveNumber(Variable("LISTEN_PID"));
  const std::optional<int> count = PositiveNumber(Variable("LISTEN_FDS"));
  return pid == getpid() && count ? *count : 0;
}

int SocketOption(int fd, int option) {
  int value = 0;
  socklen_t size = sizeof(value);
  return getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 ? value : -errno;
}

}  // namespace
}  // namespace kernix

extern "C" {

int sd_notify(int unset_environment, const char* state) {
  const std::string_view name = kernix::Variable("NOTIFY_SOCKET");
  const int result = name.empty() ? 0 : kernix::SendTo(name, state);
  const bool told = !name.empty() && result == 0;
  if (unset_environment != 0) unsetenv("NOTIFY_SOCKET");
  return told ? 1 : result;
}

int sd_listen_fds(int unset_environment) {
  const int count = kernix::PassedDescriptors();
  if (unset_environment != 0) {
    for (const char* name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) unsetenv(name);
  }
  for (int fd = SD_LISTEN_FDS_START; fd < SD_LISTEN_FDS_START + count; ++fd) {
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) return -errno;
  }
  return count;
}

// Supports only kernixd's call, which passes no path to compare.
int sd_is_socket_unix(int fd, int type, int listening, const char* path, size_t /*length*/) {
  if (path != nullptr) return -ENOSYS;
  const int domain = kernix::SocketOption(fd, SO_DOMAIN);
  if (domain == -ENOTSOCK) return 0;
  if (domain < 0) return domain;
  if (domain != AF_UNIX || (type != 0 && kernix::SocketOption(fd, SO_TYPE) != type)) return 0;
  return listening < 0 || (kernix::SocketOption(fd, SO_ACCEPTCONN) != 0) == (listening != 0) ? 1 : 0;
}

}  // extern "C"
