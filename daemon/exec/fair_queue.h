// SPDX-License-Identifier: Apache-2.0
//
// A queue in which users take turns, and how much of it may run at once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "common/base/identity.h"
#include "common/os/env.h"
#include "daemon/exec/askers.h"

namespace kernix::exec {

// Each item has a weight of at least 1, such as the number of jobs that it keeps busy, and a position in the line of
// each user who waits for it. The queue serves the first item in the line of the user whose running items (served, not
// finished) weigh least. Among equals, it chooses the user who has been served least since these users have been
// waiting side by side, then the user who came first. An item counts as served by its weight, and once it has ended by
// the time that it ran, too. So one user's many, large or long items delay another user only by the items that run at
// the moment and, after an item of that user, by as much time as that item took. A line is in the order of ranks, lower
// ones first, and among equals of arrival.
//
// An item that several users wait for is served in the turn of the first of them, and runs for that user alone. So a
// user gets no more turns by putting items into others' lines, and a user who joins an item and comes first pays a
// turn.
//
// No user waits forever: serving a user moves that user's next turn back. The first item of the next user stays next
// until it is taken, or until an asker of it comes or goes.
//
// Not thread-safe.
template <typename Item>
class FairQueue {
 public:
  using Positions = std::vector<QueuePosition>;  // at most one for each user

  void Push(uint64_t weight, const Positions& positions, Item item) {
    const auto entry = entries_.emplace(++pushed_, Entry{weight, std::move(item), {}}).first;
    try {
      Put(entry->first, entry->second, positions);
    } catch (...) {  // whoever pushed it takes it for lost
      Erase(entry);
      throw;
    }
  }

  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }

  // The item to serve next. The queue must not be empty.
  const Item& Next() const { return entries_.at(NumberOf(*NextUser())).item; }

  struct Served {
    Item item;
    UserId user;  // in whose turn
  };

  // Removes and returns the next item. Its weight counts as running for the user in whose turn it is served, until
  // Finish().
  Served Take() {
    const auto next = NextUser();
    const auto entry = entries_.find(NumberOf(*next));
    Standing& standing = next->second.standing;
    clock_ = std::max(clock_, standing.served);
    standing.Serve(entry->second.weight);
    Served served{std::move(entry->second.item), next->first};
    Erase(entry);
    ForgetTheIdle();
    return served;
  }

  // Ends an item that was taken and ran for so long. Must be called with the user of Take() and the weight passed to
  // Push().
  void Finish(UserId user, uint64_t weight, Duration ran = Duration(0)) {
    Standing& standing = users_.at(user).standing;
    standing.running -= weight;
    standing.served += static_cast<uint64_t>(ran.count());
  }

  // The waiting items, in the order in which they would be served if nothing finished and nothing arrived in the
  // meantime.
  std::vector<Item> InOrder() const {
    FairQueue rest = *this;
    std::vector<Item> order;
    order.reserve(size());
    while (!rest.empty()) order.push_back(rest.Take().item);
    return order;
  }

  // Gives the waiting items for which `is_meant` holds the positions that `positions_of` returns for each.
  template <typename Predicate, typename PositionsOf>
  void Move(const Predicate& is_meant, const PositionsOf& positions_of) {
    for (auto& [number, entry] : entries_) {
      if (is_meant(entry.item)) Put(number, entry, positions_of(entry.item));
    }
  }

  // Removes an item that has not been taken.
  void Remove(const Item& item) {
    const auto entry =
        std::find_if(entries_.begin(), entries_.end(), [&](const auto& each) { return each.second.item == item; });
    if (entry != entries_.end()) Erase(entry);
  }

 private:
  struct Entry {
    uint64_t weight;
    Item item;
    Positions positions;
  };
  using Entries = std::map<uint64_t, Entry>;  // by number, in the order of arrival

  // Determines whose turn it is: the user with the least standing is next.
  struct Standing {
    uint64_t running = 0;  // total weight of items taken and not finished
    // Total weight of items taken, and the milliseconds for which items ran that have finished: a weight counts as one.
    // Starts at the queue's clock, so that newcomers do not catch up.
    uint64_t served = 0;
    uint64_t arrival = 0;  // unique for each user

    void Serve(uint64_t weight) {
      running += weight;
      served += weight;
    }
    bool operator<(const Standing& other) const {
      return std::tie(running, served, arrival) < std::tie(other.running, other.served, other.arrival);
    }
  };

  struct User {
    Standing standing;
    std::set<std::pair<uint64_t, uint64_t>> line;  // ranks and numbers of the items that this user waits for
  };
  using Users = std::map<UserId, User>;

  // Puts the item into these positions alone. If there is no memory for that, it may keep others as well.
  void Put(uint64_t number, Entry& entry, const Positions& positions) {
    const Positions old = entry.positions;
    entry.positions.insert(entry.positions.end(), positions.begin(), positions.end());
    for (const QueuePosition& position : positions) LineUp(position, number);
    entry.positions.erase(entry.positions.begin(), entry.positions.end() - static_cast<ptrdiff_t>(positions.size()));
    for (const QueuePosition& position : old) {
      if (std::find(positions.begin(), positions.end(), position) == positions.end()) Leave(position, number);
    }
  }

  void LineUp(const QueuePosition& position, uint64_t number) {
    const auto [found, is_new] = users_.try_emplace(position.user);
    User& own = found->second;
    if (is_new) own.standing.arrival = ++arrivals_;
    // A user who was idle does not get to catch up on missed turns.
    if (own.line.empty()) own.standing.served = std::max(own.standing.served, clock_);
    own.line.emplace(position.rank, number);
  }

  void Leave(const QueuePosition& position, uint64_t number) {
    const auto user = users_.find(position.user);
    if (user != users_.end()) user->second.line.erase({position.rank, number});
  }

  void Erase(typename Entries::iterator entry) {
    for (const QueuePosition& position : entry->second.positions) Leave(position, entry->first);
    entries_.erase(entry);
  }

  static uint64_t NumberOf(const typename Users::value_type& user) { return user.second.line.begin()->second; }

  template <typename Map>
  static auto NextOf(Map& users) {
    return std::min_element(users.begin(), users.end(), [](const auto& a, const auto& b) {
      const bool one = !a.second.line.empty();
      const bool other = !b.second.line.empty();
      return one && (!other || a.second.standing < b.second.standing);
    });
  }
  typename Users::const_iterator NextUser() const { return NextOf(users_); }
  typename Users::iterator NextUser() { return NextOf(users_); }

  // Drops users without waiting or running items, except those who have been served more than others: a user who was
  // dropped and returns counts as new.
  void ForgetTheIdle() {
    std::erase_if(users_, [this](const auto& user) {
      const Standing& standing = user.second.standing;
      return user.second.line.empty() && standing.running == 0 && standing.served <= clock_;
    });
  }

  Users users_;  // users who wait, have something running, or have been served more than others
  Entries entries_;
  uint64_t pushed_ = 0;
  uint64_t clock_ = 0;  // the `served` of the user whose item was taken last
  uint64_t arrivals_ = 0;
};

// Decides how many actions may run at once, by number and by memory. Not thread-safe.
class Admission {
 public:
  // `memory_budget_bytes` 0: no limit.
  Admission(int max_jobs, uint64_t memory_budget_bytes)
      : max_jobs_(max_jobs), budget_(memory_budget_bytes == 0 ? UINT64_MAX : memory_budget_bytes) {}

  // Whether an action with this estimate may start now. An action that exceeds a whole limit may start when nothing
  // else runs.
  bool MayStart(uint64_t estimate) const {
    if (running_ == 0) return true;
    return running_ < max_jobs_ && used_ <= budget_ && estimate <= budget_ - used_;
  }

  void Start(uint64_t estimate) {
    ++running_;
    used_ += estimate;
  }

  // Must be called with the value passed to Start().
  void Finish(uint64_t estimate) {
    --running_;
    used_ -= estimate;
  }

  int running() const { return running_; }

 private:
  const int max_jobs_;
  const uint64_t budget_;
  int running_ = 0;
  uint64_t used_ = 0;
};

}  // namespace kernix::exec
