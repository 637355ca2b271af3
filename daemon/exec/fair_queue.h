// SPDX-License-Identifier: Apache-2.0
//
// A queue in which users take turns.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "common/base/user_id.h"

namespace kernix::exec {

// Each item has a weight of at least 1, such as the number of jobs that it keeps busy. The queue serves the first item
// of the user whose running items (served, not finished) weigh least. Among equals, it chooses the user who has been
// served least since these users have been waiting side by side, then the user who came first. So many or large items
// of one user delay another user only by what is running at the moment. Items of one user are served by rank, lower
// ones first, and among equals in the order of their arrival.
//
// No user waits forever: serving one user moves that user's next turn back, and the first item of the user whose turn
// it is stays next until it is taken.
//
// Not thread-safe.
template <typename Item>
class FairQueue {
 public:
  void Push(UserId user, uint64_t weight, uint64_t rank, Item item) {
    const auto [found, is_new] = users_.try_emplace(user);
    User& own = found->second;
    if (is_new) own.standing.arrival = ++arrivals_;
    // A user who was idle does not get to catch up on missed turns.
    if (own.waiting.empty()) own.standing.served = std::max(own.standing.served, clock_);
    const auto place = std::upper_bound(own.waiting.begin(), own.waiting.end(), rank,
                                        [](uint64_t r, const Entry& entry) { return r < entry.rank; });
    own.waiting.insert(place, {weight, rank, std::move(item)});
    ++size_;
  }

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }

  // The item to serve next. The queue must not be empty.
  const Item& Next() const { return NextUser()->second.waiting.front().item; }

  // Removes and returns the next item. Its weight counts as running for its user until Finish().
  Item Take() {
    User& user = NextUser()->second;
    Entry entry = std::move(user.waiting.front());
    user.waiting.pop_front();
    clock_ = std::max(clock_, user.standing.served);
    user.standing.Serve(entry.weight);
    --size_;
    ForgetTheIdle();
    return std::move(entry.item);
  }

  // Ends an item that was taken. Must be called with the user and weight passed to Push().
  void Finish(UserId user, uint64_t weight) { users_.at(user).standing.running -= weight; }

  // The waiting items, in the order in which they would be served if nothing finished and nothing arrived in the
  // meantime.
  std::vector<Item> InOrder() const {
    std::vector<Line> lines;
    for (const auto& [user, own] : users_) {
      if (!own.waiting.empty()) lines.push_back({own.standing, &own.waiting});
    }
    std::vector<Item> order;
    order.reserve(size_);
    while (order.size() < size_) {
      Line& line = *std::min_element(lines.begin(), lines.end(), Line::IsBefore);
      const Entry& entry = (*line.waiting)[line.position++];
      line.standing.Serve(entry.weight);
      order.push_back(entry.item);
    }
    return order;
  }

  // Removes and returns the waiting items for which `is_unwanted` holds.
  template <typename Predicate>
  std::vector<Item> Remove(const Predicate& is_unwanted) {
    std::vector<Item> removed;
    for (auto& [user, own] : users_) {
      std::deque<Entry> kept;
      for (Entry& entry : own.waiting) {
        if (is_unwanted(entry.item)) {
          removed.push_back(std::move(entry.item));
        } else {
          kept.push_back(std::move(entry));
        }
      }
      own.waiting = std::move(kept);
    }
    size_ -= removed.size();
    return removed;
  }

 private:
  struct Entry {
    uint64_t weight;
    uint64_t rank;
    Item item;
  };

  // Determines whose turn it is: the user with the least standing is next.
  struct Standing {
    uint64_t running = 0;  // total weight of items taken and not finished
    uint64_t served = 0;  // total weight of items taken; starts at the queue's clock, so that newcomers do not catch up
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
    std::deque<Entry> waiting;
  };

  // A user's waiting items and position in InOrder().
  struct Line {
    Standing standing;
    const std::deque<Entry>* waiting;
    size_t position = 0;

    bool IsOver() const { return position == waiting->size(); }
    static bool IsBefore(const Line& a, const Line& b) {
      if (a.IsOver() || b.IsOver()) return !a.IsOver() && b.IsOver();
      return a.standing < b.standing;
    }
  };

  using Users = std::map<UserId, User>;

  template <typename Map>
  static auto NextOf(Map& users) {
    return std::min_element(users.begin(), users.end(), [](const auto& a, const auto& b) {
      const bool one = !a.second.waiting.empty();
      const bool other = !b.second.waiting.empty();
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
      return user.second.waiting.empty() && standing.running == 0 && standing.served <= clock_;
    });
  }

  Users users_;  // users who wait, have something running, or have been served more than others
  size_t size_ = 0;
  uint64_t clock_ = 0;  // the `served` of the user whose item was taken last
  uint64_t arrivals_ = 0;
};

}  // namespace kernix::exec
