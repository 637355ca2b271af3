// SPDX-License-Identifier: Apache-2.0
//
// The daemon's side of daemon/base/quick_lookup.h.
#pragma once

#include "daemon/base/unique_fd.h"
#include "daemon/server/backend.h"
#include "daemon/server/load_gate.h"
#include "daemon/server/unix_peer.h"

namespace kernix::server {

// Whether the first bytes of a connection, which stay in it, are those of a lookup.
bool BeginsLookup(int connection);

// Answers lookups, each in a thread of its own. A lookup is none of the loads under way: who may not come in, or is cut
// off, asks for a load and learns more. Thread-safe.
class LookupServer {
 public:
  // `backend` must outlive it.
  explicit LookupServer(Backend& backend);
  ~LookupServer();
  LookupServer(const LookupServer&) = delete;
  LookupServer& operator=(const LookupServer&) = delete;

  // Answers the lookup of `peer` and closes the connection.
  void Serve(UniqueFd connection, const Peer& peer);

  // Cuts off those under way, refuses those to come, and waits for the threads.
  void Stop();

 private:
  Backend& backend_;
  LoadGate gate_;
};

}  // namespace kernix::server
