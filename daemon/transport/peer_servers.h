// SPDX-License-Identifier: Apache-2.0
//
// One gRPC server for each user that connects. gRPC does not tell a service who calls, so each user gets a service
// object that knows.
#pragma once

#include <map>
#include <memory>

#include "common/base/identity.h"
#include "common/base/mutex.h"
#include "common/os/env.h"
#include "common/os/unique_fd.h"
#include "daemon/rpc/backend.h"

namespace kernix::server {

class PeerServer;

// Thread-safe.
class PeerServers {
 public:
  // `backend` must outlive this object.
  explicit PeerServers(Backend& backend);
  ~PeerServers();  // calls Shutdown() with no time to wait
  PeerServers(const PeerServers&) = delete;
  PeerServers& operator=(const PeerServers&) = delete;

  // Serves `connection` as one of `user`'s. Closes a connection that comes after Shutdown(), or for which no server can
  // be created.
  void Serve(UniqueFd connection, const IdentityPtr& user);

  // Sets the answer of the health service.
  void SetServing(bool serving);

  // Ends all calls, cancelling those that are not over at `deadline`. Returns when none is left.
  void Shutdown(std::chrono::system_clock::time_point deadline);

 private:
  PeerServer* FindOrStart(const IdentityPtr& user) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Backend& backend_;
  Mutex mutex_;
  bool serving_ ABSL_GUARDED_BY(mutex_) = true;
  bool shut_down_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<UserId, std::unique_ptr<PeerServer>> servers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::server
