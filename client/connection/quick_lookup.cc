// SPDX-License-Identifier: Apache-2.0
#include "client/connection/quick_lookup.h"

#include <sys/socket.h>

#include <chrono>
#include <limits>
#include <utility>

#include "client/connection/fork_gate.h"
#include "client/connection/signals_blocked.h"
#include "client/connection/unix_socket.h"
#include "common/base/status_macros.h"
#include "common/base/version.h"
#include "common/wire/quick_lookup.h"

namespace kernix {
namespace {

// Shuts down `socket` when `section` is interrupted.
class ShutdownOnInterrupt {
 public:
  ShutdownOnInterrupt(ForkGate::Section& section, int socket) : section_(section) {
    section_.OnInterrupt([socket] { shutdown(socket, SHUT_RDWR); });
  }
  ~ShutdownOnInterrupt() { section_.OnInterrupt(nullptr); }
  ShutdownOnInterrupt(const ShutdownOnInterrupt&) = delete;
  ShutdownOnInterrupt& operator=(const ShutdownOnInterrupt&) = delete;

 private:
  ForkGate::Section& section_;
};

absl::StatusOr<v1::LookupReply> Ask(int socket, const std::string& request, MonotonicTime deadline) {
  KERNIX_RETURN_IF_ERROR(SendFrame(socket, kLookupMagic, request, deadline));
  KERNIX_ASSIGN_OR_RETURN(const std::string text, ReceiveFrame(socket, std::numeric_limits<uint32_t>::max(), deadline));
  v1::LookupReply reply;
  if (!reply.ParseFromString(text)) return absl::InternalError("cannot parse the daemon's answer to a lookup");
  return reply;
}

}  // namespace

std::optional<v1::LoadResult> LookUpQuickly(const ClientEnvironment& environment, const Endpoint& endpoint,
                                            const v1::LoadRequest& request) {
  v1::LookupRequest lookup;
  lookup.set_build_id(BuildId());
  *lookup.mutable_load() = request;
  const std::string text = lookup.SerializeAsString();
  if (text.size() > kMaxLookupBytes) return std::nullopt;

  const SignalsBlocked blocked;  // a handler that forks would wait for this section
  ForkGate::Section section;     // a child must not share the socket
  const absl::StatusOr<PeerSocket> peer = ConnectTo(environment, endpoint);
  if (!peer.ok()) return std::nullopt;
  const ShutdownOnInterrupt shutdown_on_interrupt(section, peer->fd.get());
  absl::StatusOr<v1::LookupReply> reply =
      Ask(peer->fd.get(), text, std::chrono::steady_clock::now() + environment.lookup_patience);
  if (!reply.ok() || !reply->has_result()) return std::nullopt;
  return std::move(*reply->mutable_result());
}

}  // namespace kernix
