// SPDX-License-Identifier: Apache-2.0
#include "common/base/journal.h"

#include <endian.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdint>

#include "absl/strings/ascii.h"
#include "common/base/strings.h"

namespace kernix {
namespace {

bool StderrIs(const char* stream) {
  struct stat status {};
  return stream != nullptr && fstat(STDERR_FILENO, &status) == 0 && StrCat(status.st_dev, ":", status.st_ino) == stream;
}

}  // namespace

Journal::Journal(std::string socket_path)
    : socket_path_(std::move(socket_path)), socket_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {}

const Journal* Journal::OfStderr() {
  static const Journal* const journal =
      StderrIs(getenv("JOURNAL_STREAM")) ? new Journal("/run/systemd/journal/socket") : nullptr;
  return journal;
}

void Journal::Add(std::string& entry, std::string_view prefix, std::string_view name, std::string_view value) {
  const uint64_t size = htole64(value.size());
  StrAppend(&entry, prefix, absl::AsciiStrToUpper(ToAbsl(name)), "\n",
            std::string_view(reinterpret_cast<const char*>(&size), sizeof(size)), value, "\n");
}

bool Journal::Send(const std::string& entry) const {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socket_path_.copy(address.sun_path, sizeof(address.sun_path) - 1);
  return sendto(socket_, entry.data(), entry.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                reinterpret_cast<const sockaddr*>(&address), sizeof(address)) >= 0;
}

}  // namespace kernix
