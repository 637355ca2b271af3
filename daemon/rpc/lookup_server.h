// SPDX-License-Identifier: Apache-2.0
//
// The daemon's side of common/wire/quick_lookup.h.
#pragma once

#include "common/base/identity.h"
#include "common/os/unique_fd.h"
#include "daemon/rpc/backend.h"
#include "daemon/rpc/load_gate.h"

namespace kernix::server {

// Whether the first bytes of a connection, which stay in it, are those of a lookup.
bool BeginsLookup(int connection);

// Answers lookups, each in a thread of its own. A lookup is none of the loads under way: who may not come in, or is cut
// off, asks for a load and learns more. Thread-safe.
class LookupServer {
 public:
  // Lookups of one user at once: each may hold kMaxLookupBytes.
  static constexpr int kMaxPerUser = 64;

  // `backend` must outlive it. `patience`: what a client may take to send its question and to take the answer.
  explicit LookupServer(Backend& backend, Duration patience = std::chrono::seconds(5));
  ~LookupServer();
  LookupServer(const LookupServer&) = delete;
  LookupServer& operator=(const LookupServer&) = delete;

  // Answers the lookup of `user` and closes the connection.
  void Serve(UniqueFd connection, IdentityPtr user);

  // Cuts off those under way, refuses those to come, and waits for the threads.
  void Stop();

 private:
  Backend& backend_;
  const Duration patience_;
  LoadGate gate_{kMaxPerUser};
};

}  // namespace kernix::server
