// SPDX-License-Identifier: Apache-2.0
//
// The loads of a daemon: a gate that all enter and leave, limits of the number of things that each user may have at
// once, and what a load costs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "common/base/cancellation.h"
#include "common/base/identity.h"
#include "common/base/mutex.h"
#include "common/os/env.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::server {

// Thread-safe. open -> closed, once.
class LoadGate {
 public:
  // Held for the duration of a load. The gate must outlive it.
  class Permit {
   public:
    Permit(LoadGate& gate, uint64_t id) : gate_(gate), id_(id) {}
    ~Permit() { gate_.Leave(id_); }
    Permit(const Permit&) = delete;
    Permit& operator=(const Permit&) = delete;

    // The load runs from now on, until Hide(), for List().
    void Show(UserId owner, const v1::LoadRequest& request, MonotonicTime now);
    void Note(const v1::Progress& progress);
    void Hide();

   private:
    LoadGate& gate_;
    const uint64_t id_;
  };

  // kUnavailable if the gate is closed. `cancellation` lets the gate cancel the load.
  absl::StatusOr<std::unique_ptr<Permit>> Enter(CancellationPtr cancellation);

  // After this, no load enters.
  void Close();
  bool closed() const;

  int inside() const;

  // The running loads, the oldest first. Long names and labels are shortened: nobody has checked them yet.
  std::vector<v1::RunningLoad> List(MonotonicTime now) const;

  // Waits until no load is inside. False if `deadline` passes first.
  bool WaitUntilEmpty(MonotonicTime deadline);

  // Cancels every load that is inside. They leave on their own.
  void CancelAll();
  bool cancels_all() const;

  // Cancels the load that List() shows with this id, if it is `owner`'s, or anybody's without an owner. False if there
  // is none.
  bool Cancel(uint64_t id, std::optional<UserId> owner);

 private:
  struct Inside {
    CancellationPtr cancellation;
    std::optional<v1::RunningLoad> shown;
    MonotonicTime begin;
  };
  void Leave(uint64_t id);

  mutable Mutex mutex_;
  CondVar left_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancels_all_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<uint64_t, Inside> inside_ ABSL_GUARDED_BY(mutex_);
};

// Limits how many things of one kind each user may have at once. Tells refused callers when to ask again: one after the
// other, as fast as others have left lately. Thread-safe.
class UserLimit {
 public:
  // `things` and `setting` appear in the refusal: "fetches of artifacts", "max_fetches_per_user". `most` 0: no limit.
  // `env`, which has the clock, must outlive the limit.
  UserLimit(Env& env, std::string things, std::string setting, int most);

  // Held as long as the thing exists. The limit must outlive it.
  class Permit {
   public:
    Permit(UserLimit& limit, UserId user) : limit_(limit), user_(user) {}
    ~Permit() { limit_.Leave(user_); }
    Permit(const Permit&) = delete;
    Permit& operator=(const Permit&) = delete;

   private:
    UserLimit& limit_;
    const UserId user_;
  };

  // MakeBusyError(), with what to do, if `user` already has the allowed number.
  absl::StatusOr<std::unique_ptr<Permit>> Enter(const Identity& user);

  // How long a refused caller should wait, for a refusal here or for another shortage that ends with one of these
  // things.
  Duration NextTurn(UserId user);

  // Changes the limit. Users who have more than that keep it.
  void SetMost(int most);

 private:
  struct User {
    int count = 0;
    MonotonicTime left{};       // when the last thing ended
    Duration pace{50};          // between two ends
    MonotonicTime last_turn{};  // of those who were refused
  };
  void Leave(UserId user);
  Duration TurnOf(User& user);

  Env& env_;
  const std::string things_;
  const std::string setting_;
  Mutex mutex_;
  int most_ ABSL_GUARDED_BY(mutex_);
  std::map<UserId, User> users_ ABSL_GUARDED_BY(mutex_);  // with something
};

// What a load costs kernixd in memory. A request of some kilobytes can ask for a plan of many megabytes.

// About the most bytes that kernixd has in memory for this load at once, from its arrival until its steps run. Known
// before anything is planned. It does not include the contents of uploaded headers and the outputs of steps.
uint64_t LoadCost(const v1::LoadRequest& request);

// Which part of the request costs most: "1000 sources, each compiled with 1000 flags".
std::string CostliestPart(const v1::LoadRequest& request);

}  // namespace kernix::server
