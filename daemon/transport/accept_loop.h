// SPDX-License-Identifier: Apache-2.0
//
// Accepts connections, identifies their peers, and counts open connections. gRPC could accept on its own, but it does
// not reveal who a Unix peer is, and does not take a listening socket from outside.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/identity.h"
#include "common/os/env.h"
#include "common/os/unique_fd.h"
#include "daemon/transport/local_user.h"

namespace kernix::server {

// Limits how many connections each user may have open.

// Not thread-safe.
class ConnectionQuota {
 public:
  // Each user may have `max_per_user` connections (0: no limit), and all users together `capacity`. In addition, no
  // user may have more connections than are still free, so that whatever one user does, another one can connect.
  ConnectionQuota(int max_per_user, int capacity) : max_per_user_(max_per_user), capacity_(capacity) {}

  // Counts one more connection of `user`. kResourceExhausted, with what to do, if no more are allowed.
  absl::Status Enter(UserId user);
  // Whether that was the user's last one.
  bool Leave(UserId user);

 private:
  const int max_per_user_;
  const int capacity_;
  int open_ = 0;
  std::map<UserId, int> open_of_user_;
};

// The number of connections that this process's descriptors suffice for if each needs `descriptors` of them. A quarter
// of all is reserved for compile jobs and files.
int ConnectionCapacity(int descriptors);

// Decides when a daemon has been idle for long enough.

// The daemon's activity at one moment.
struct Activity {
  int running = 0;       // present clients and loads
  uint64_t started = 0;  // clients since the start; reveals those that came and went between two steps
};

// A background loop; each Step() is one round. Not thread-safe.
class IdleMonitor {
 public:
  // `timeout` 0: never idle for long enough.
  IdleMonitor(Duration timeout, MonotonicTime now) : timeout_(timeout), active_at_(now) {}

  // True if nothing has been active for the whole timeout.
  bool Step(const Activity& activity, MonotonicTime now);

  void SetTimeout(Duration timeout) { timeout_ = timeout; }

  // How long to wait until the next step. The step may come earlier.
  Duration Pause(MonotonicTime now) const;

 private:
  Duration timeout_;
  MonotonicTime active_at_;  // last time of activity, or of a step before which activity may just have ended
  uint64_t started_ = 0;
  bool was_active_ = true;
};

// Gets an AcceptLoop's connections, in its thread.
class AcceptHandler {
 public:
  virtual ~AcceptHandler() = default;

  // Why `peer` may not connect, if so: the loop then logs that.
  virtual absl::Status Admit(const Peer& peer) = 0;
  // Takes over the connection of such a peer, to tell the reason; the loop closes it a second later.
  virtual void RefuseStranger(UniqueFd connection, const absl::Status& reason) = 0;
  // Takes over an open connection that has data to read or has been silent for a second.
  virtual void Serve(UniqueFd connection, UserId user) = 0;
  // There is no room for a connection, whether or not Refuse() is called for it.
  virtual void NoteRefusal() = 0;
  // Takes over such a connection, to tell the client; the loop closes it a second later.
  virtual void Refuse(UniqueFd connection, UserId user, const absl::Status& reason) = 0;
  // The last connection of a user has closed.
  virtual void Left(UserId user) = 0;
};

class AcceptLoop {
 public:
  // `env`, the clock, and `handler` must outlive it. Accepts from `listener`, a non-blocking socket that must live
  // until Stop(); negative: accepts nothing. `connected`, if it holds a descriptor, is treated as the first connection.
  // Connections for which `quota` has no room are refused with the reason and closed. `all_closed`, unless empty, is
  // called when a connection has closed (or was refused), and none is open.
  static absl::StatusOr<std::unique_ptr<AcceptLoop>> Start(Env& env, int listener, UniqueFd connected,
                                                           ConnectionQuota quota, AcceptHandler& handler,
                                                           std::function<void()> all_closed);
  ~AcceptLoop();  // calls Stop()
  AcceptLoop(const AcceptLoop&) = delete;
  AcceptLoop& operator=(const AcceptLoop&) = delete;

  // Stops accepting, and returns when the thread has ended. Open connections stay open and are no longer watched.
  void Stop();

  // The number of open connections, and of all connections so far. Connections that wait to be accepted count as open.
  // Thread-safe.
  Activity activity() const;

 private:
  AcceptLoop(Env& env, ConnectionQuota quota, AcceptHandler& handler, std::function<void()> all_closed, int listener,
             UniqueFd epoll, UniqueFd stop);

  void Run(UniqueFd connected);
  void WaitAndHandle();
  int Timeout() const;
  void AcceptSome();
  void PauseAccepting(int error_number);
  void ResumeAccepting();
  void TakeIn(UniqueFd connection);
  void TurnAway(UniqueFd connection, const Peer& peer, const absl::Status& status);
  // Unless `most` connections are being told already.
  void TellWhy(UniqueFd connection, size_t most, const std::function<void(UniqueFd connection)>& tell);
  void CutOffTheTurnedAway();
  void Open(UniqueFd connection, const Peer& peer);
  void HandOver(int watch);
  void HandOverTheSilent();
  void Closed(int watch);

  Env& env_;
  AcceptHandler& handler_;
  const std::function<void()> all_closed_;
  const int listener_;
  const UniqueFd epoll_;
  const UniqueFd stop_;  // an eventfd
  std::atomic<int> open_{0};
  std::atomic<uint64_t> total_{0};

  // Used only by the loop's thread.
  bool stopping_ = false;
  std::optional<MonotonicTime> paused_until_;  // set while there are no descriptors to accept with
  ConnectionQuota quota_;
  // Refused connections are logged only from time to time, because there may be thousands a second.
  uint64_t turned_away_ = 0;
  struct Leaving {
    UniqueFd watch;  // a second descriptor
    MonotonicTime until;
  };
  std::deque<Leaving> leaving_;  // a limited number, while they may read the reason
  MonotonicTime next_word_;
  struct Watched {
    UniqueFd watch;
    UserId user{};
  };
  // A second descriptor of each open connection: the kernel, unlike gRPC, reports when a connection closes.
  std::map<int, Watched> watches_;
  struct Silent {
    UniqueFd connection;
    UserId user{};
    MonotonicTime until;
  };
  std::map<int, Silent> silent_;  // connections that have not sent anything yet, by their watch

  std::thread thread_;
};

}  // namespace kernix::server
