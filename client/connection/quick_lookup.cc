// SPDX-License-Identifier: Apache-2.0
#include "client/connection/quick_lookup.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "client/connection/endpoint.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/wire/quick_lookup.h"

namespace kernix {
namespace {

// No other socket gets the same number before this one is closed everywhere.
std::optional<FileId> IdOf(int fd) {
  struct stat info {};
  if (fstat(fd, &info) != 0 || !S_ISSOCK(info.st_mode)) return std::nullopt;
  return FileId{info.st_dev, info.st_ino};
}

// How long a client stays awake for its first answer, for which a new process waits: going to sleep and waking up takes
// as long as the answer. Later it sleeps, because many processes that ask again and again would keep the processors
// from the daemon.
constexpr std::chrono::microseconds kAwake{200};

std::atomic<bool> has_asked{false};

absl::StatusOr<v1::LookupReply> Ask(int socket, std::string_view prefix, const std::string& request,
                                    MonotonicTime deadline) {
  KERNIX_RETURN_IF_ERROR(SendFrame(socket, prefix, request, deadline));
  const bool stay_awake = !has_asked.exchange(true);
  const MonotonicTime awake_until = stay_awake ? std::chrono::steady_clock::now() + kAwake : MonotonicTime();
  KERNIX_ASSIGN_OR_RETURN(const std::string text,
                          ReceiveFrame(socket, std::numeric_limits<uint32_t>::max(), deadline, awake_until));
  v1::LookupReply reply;
  if (!reply.ParseFromString(text)) return absl::InternalError("cannot parse the daemon's answer to a lookup");
  return reply;
}

std::string AddressOf(const Endpoint& endpoint) { return StrCat(endpoint.socket, "\n", endpoint.store_directory); }

}  // namespace

UniqueFd KeptSocket::Take(const std::string& address) {
  Kept kept;
  {
    const MutexLock lock(mutex_);
    kept = std::exchange(kept_, {});
  }
  const bool ours = kept.socket.ok() && kept.owner == getpid() && IdOf(kept.socket.get()) == kept.id;
  if (ours && kept.address == address) return std::move(kept.socket);
  Drop(std::move(kept));
  return {};
}

void KeptSocket::Keep(std::string address, UniqueFd socket) {
  Kept kept{.address = std::move(address), .id = IdOf(socket.get()), .owner = getpid()};
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

void AnnounceLookup(const ClientEnvironment& environment, const Endpoint& endpoint) {
  const std::string address = AddressOf(endpoint);
  UniqueFd socket = PerProcess<KeptSocket>::Get().Take(address);
  if (!socket.ok()) {
    absl::StatusOr<PeerSocket> peer = ConnectTo(environment, endpoint);
    if (!peer.ok()) return;  // the lookup finds that, too
    socket = std::move(peer->fd);
    const ssize_t sent = send(socket.get(), kLookupMagic.data(), kLookupMagic.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent != static_cast<ssize_t>(kLookupMagic.size())) return;
  }
  PerProcess<KeptSocket>::Get().Keep(address, std::move(socket));
}

std::optional<v1::LoadResult> LookUpQuickly(const ClientEnvironment& environment, const Endpoint& endpoint,
                                            const v1::LoadRequest& request) {
  const std::string text = LookupOf(request).SerializeAsString();
  if (text.size() > kMaxLookupBytes) return std::nullopt;

  const MonotonicTime deadline = std::chrono::steady_clock::now() + environment.lookup_patience;
  const std::string address = AddressOf(endpoint);
  UniqueFd socket = PerProcess<KeptSocket>::Get().Take(address);
  absl::StatusOr<v1::LookupReply> reply = absl::UnavailableError("not asked yet");
  if (socket.ok()) reply = Ask(socket.get(), "", text, deadline);
  // The daemon closes a connection that has been silent for long.
  if (absl::IsUnavailable(reply.status())) {
    absl::StatusOr<PeerSocket> peer = ConnectTo(environment, endpoint);
    if (!peer.ok()) return std::nullopt;
    socket = std::move(peer->fd);
    reply = Ask(socket.get(), kLookupMagic, text, deadline);
  }
  if (!reply.ok()) {
    KeptSocket::End(std::move(socket));
    return std::nullopt;
  }
  PerProcess<KeptSocket>::Get().Keep(address, std::move(socket));
  if (!reply->has_result()) return std::nullopt;
  return std::move(*reply->mutable_result());
}

}  // namespace kernix
