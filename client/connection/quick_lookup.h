// SPDX-License-Identifier: Apache-2.0
//
// The client's side of common/wire/quick_lookup.h, and the connection that a process keeps for it.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "client/connection/endpoint.h"
#include "common/os/file_identity.h"
#include "common/os/fork_safety.h"
#include "common/os/unique_fd.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix {

// The connection that a process keeps from one lookup to the next: one socket at most. Thread-safe.
class KeptSocket {
 public:
  // The kept socket for `address`, which is then the caller's. None if there is only another one, if it is the parent's
  // (a child has its parent's descriptors, but must not read the parent's answers), or if the application has closed
  // it: its number may be another file's by now.
  UniqueFd Take(const std::string& address);

  // Keeps `socket` instead of the one before it.
  void Keep(std::string address, UniqueFd socket);

  // Ends a connection that this process has made. Closing alone is not enough if another thread has forked.
  static void End(UniqueFd socket);

 private:
  struct Kept {
    std::string address;
    UniqueFd socket;
    std::optional<FileId> id;
    pid_t owner = 0;
  };

  // Forgets `kept`, and closes its socket only if it is ours.
  static void Drop(Kept kept);

  ForkSafeMutex mutex_;
  Kept kept_ ABSL_GUARDED_BY(mutex_);
};

// Connects to the daemon of `endpoint`, if one listens, for a lookup that follows soon: the daemon takes in the
// connection while the caller prepares the request. Does nothing if a connection is kept.
void AnnounceLookup(const ClientEnvironment& environment, const Endpoint& endpoint);

// Looks up `request` at the daemon of `endpoint`, without gRPC, on the kept connection if that is still open. Returns
// nullopt if the caller must use Load: after a miss or an error, for a very large request, if no daemon or one of
// another build listens, or if it does not answer within `environment.lookup_patience`.
std::optional<v1::LoadResult> LookUpQuickly(const ClientEnvironment& environment, const Endpoint& endpoint,
                                            const v1::LoadRequest& request);

}  // namespace kernix
