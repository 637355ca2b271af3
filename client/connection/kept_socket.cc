// SPDX-License-Identifier: Apache-2.0
#include "client/connection/kept_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

namespace kernix {
namespace {

// No other socket gets the same number before this one is closed everywhere.
std::optional<FileId> IdOf(int fd) {
  struct stat info {};
  if (fstat(fd, &info) != 0 || !S_ISSOCK(info.st_mode)) return std::nullopt;
  return FileId{info.st_dev, info.st_ino};
}

[[maybe_unused]] const KeptSocket& kMadeAtLoad = KeptSocket::OfProcess();

}  // namespace

KeptSocket& KeptSocket::OfProcess() {
  static auto* kept = new KeptSocket;
  return *kept;
}

UniqueFd KeptSocket::Take(const std::string& place) {
  Kept kept;
  {
    const MutexLock lock(mutex_);
    kept = std::exchange(kept_, {});
  }
  const bool ours = kept.socket.ok() && kept.owner == getpid() && IdOf(kept.socket.get()) == kept.id;
  if (ours && kept.place == place) return std::move(kept.socket);
  Drop(std::move(kept));
  return {};
}

void KeptSocket::Keep(std::string place, UniqueFd socket) {
  Kept kept{.place = std::move(place), .id = IdOf(socket.get()), .owner = getpid()};
  kept.socket = std::move(socket);
  {
    const MutexLock lock(mutex_);
    std::swap(kept, kept_);
  }
  Drop(std::move(kept));
}

void KeptSocket::End(UniqueFd socket) { shutdown(socket.get(), SHUT_RDWR); }

void KeptSocket::Drop(Kept kept) {
  if (!kept.socket.ok()) return;
  if (IdOf(kept.socket.get()) != kept.id) {
    kept.socket.release();
  } else if (kept.owner == getpid()) {
    End(std::move(kept.socket));
  }
}

}  // namespace kernix
