// SPDX-License-Identifier: Apache-2.0
#include "tests/security/http2_flood.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "common/base/strings.h"
#include "tests/security/users.h"

namespace kernix::security {
namespace {

constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

std::string BigEndian(uint32_t value, int bytes) {
  std::string text;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) text += static_cast<char>(value >> shift & 0xff);
  return text;
}

// A number of HPACK after a prefix of `bits` bits, whose other bits are `first`.
std::string Number(uint8_t first, int bits, size_t value) {
  const size_t most = (size_t{1} << bits) - 1;
  if (value < most) return std::string(1, static_cast<char>(first | value));
  std::string text(1, static_cast<char>(first | most));
  for (value -= most; value >= 128; value >>= 7) text += static_cast<char>(value % 128 + 128);
  return text + static_cast<char>(value);
}

std::string Text(std::string_view text) { return StrCat(Number(0, 7, text.size()), text); }

// Of this thread alone: the wrappers of the C library change the whole process.
bool BecomeInThisThread(uid_t user) {
  const gid_t group = TheUsers().service;
  return syscall(SYS_setgroups, 1, &group) == 0 && syscall(SYS_setresgid, user, user, user) == 0 &&
         syscall(SYS_setresuid, user, user, user) == 0;
}

}  // namespace

std::string Frame(FrameType type, uint8_t flags, uint32_t stream, std::string_view payload) {
  return StrCat(BigEndian(payload.size(), 3), std::string(1, static_cast<char>(type)),
                std::string(1, static_cast<char>(flags)), BigEndian(stream, 4), payload);
}

std::string Literal(std::string_view name, std::string_view value, bool indexed) {
  return StrCat(Number(indexed ? 0x40 : 0, indexed ? 6 : 4, 0), Text(name), Text(value));
}

std::string CallHeaders(std::string_view method) {
  return StrCat("\x83\x86",  // POST, http
                Literal(":path", StrCat("/kernix.v1.Kernix/", method)), Literal(":authority", "localhost"),
                Literal("content-type", "application/grpc"), Literal("te", "trailers"));
}

Flooder::Flooder(uid_t user, const std::string& socket, Flood flood, int connections)
    : address_(socket), flood_(std::move(flood)), thread_([=, this] { Run(user, connections); }) {}

Flooder::~Flooder() {
  done_ = true;
  thread_.join();
}

void Flooder::Run(uid_t user, int count) {
  if (!BecomeInThisThread(user)) return;
  std::vector<Connection> connections(count);
  std::vector<pollfd> ready(count);
  while (!done_) {
    for (int i = 0; i < count; ++i) {
      if (!connections[i].fd.ok()) Open(connections[i]);
      ready[i] = {connections[i].fd.get(), static_cast<int16_t>(flood_.reads ? POLLIN | POLLOUT : POLLOUT), 0};
    }
    poll(ready.data(), count, 20);
    for (int i = 0; i < count; ++i) {
      if (ready[i].revents == 0) continue;
      if (Read(connections[i]) && Write(connections[i])) continue;
      connections[i].fd.reset();
      ++closed_;
    }
  }
}

void Flooder::Open(Connection& connection) {
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (connect(fd.get(), address_.get(), address_.size()) != 0) return;
  connection = {std::move(fd), StrCat(kPreface, Frame(kSettings, 0, 0, ""), flood_.first)};
}

// False when the connection has ended.
bool Flooder::Write(Connection& connection) {
  if (connection.at == connection.out.size()) {
    connection.out = flood_.more(connection.stream);
    connection.at = 0;
  }
  const size_t size = std::min(connection.out.size() - connection.at, flood_.piece);
  const ssize_t sent = send(connection.fd.get(), connection.out.data() + connection.at, size, MSG_NOSIGNAL);
  if (sent < 0) return errno == EAGAIN;
  connection.at += sent;
  bytes_ += sent;
  return true;
}

bool Flooder::Read(Connection& connection) {
  std::array<char, 65536> buffer;
  if (!flood_.reads) return true;
  const ssize_t size = recv(connection.fd.get(), buffer.data(), buffer.size(), 0);
  return size > 0 || (size < 0 && errno == EAGAIN);
}

}  // namespace kernix::security
