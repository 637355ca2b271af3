// SPDX-License-Identifier: Apache-2.0
//
// The daemon's side of common/wire/quick_lookup.h.
#pragma once

#include "common/base/identity.h"
#include "common/os/unique_fd.h"
#include "daemon/rpc/backend.h"
#include "daemon/rpc/load_gate.h"
#include "daemon/rpc/user_limit.h"

namespace kernix::server {

// Whether a connection begins with the first bytes of a lookup. Does not consume these bytes.
bool BeginsLookup(int connection);

// Answers lookups, each in a thread of its own. Lookups do not count as loads under way: a client whose lookup is
// refused or cut off makes a load and learns the reason. Thread-safe.
class LookupServer {
 public:
  // Limit of concurrent lookups of one user: each may hold kMaxLookupBytes.
  static constexpr int kMaxPerUser = 64;

  // `backend` must outlive it. `patience`: how long a client may take to send its question, and to receive the answer.
  explicit LookupServer(Backend& backend, Duration patience = std::chrono::seconds(5));
  ~LookupServer();
  LookupServer(const LookupServer&) = delete;
  LookupServer& operator=(const LookupServer&) = delete;

  // Answers the lookup of `user` and closes the connection.
  void Serve(UniqueFd connection, IdentityPtr user);

  // Cuts off lookups under way, refuses new ones, and waits for the threads.
  void Stop();

 private:
  Backend& backend_;
  const Duration patience_;
  UserLimit limit_{"lookups", "", kMaxPerUser};  // nobody sees its refusals
  LoadGate gate_;
};

}  // namespace kernix::server
