// SPDX-License-Identifier: Apache-2.0
//
// One gRPC server for each user that connects. gRPC does not let a service see who calls, so each user gets a service
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
  // `backend` must outlive this.
  explicit PeerServers(Backend& backend);
  ~PeerServers();  // Shutdown() without patience
  PeerServers(const PeerServers&) = delete;
  PeerServers& operator=(const PeerServers&) = delete;

  // Serves `connection` as one of `user`'s. One that comes after Shutdown(), or for which no server can be made, is
  // closed.
  void Serve(UniqueFd connection, const IdentityPtr& user);

  // What the health service answers from now on.
  void SetServing(bool serving);

  // Ends all calls: those that are not over at `deadline` are cancelled. Returns when none is left.
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
