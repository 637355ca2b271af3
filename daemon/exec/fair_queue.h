// SPDX-License-Identifier: Apache-2.0
//
// What waits to run, in the order in which it will: users take turns.
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

// Each item has a weight of at least 1, such as the jobs that it keeps busy. The next one to be served is the first
// item of the user whose served items that have not finished weigh least; among those, of the one who has been served
// least since they wait side by side; then of the one who came first. So one user's many or large items hold another's
// back by no more than what runs at the moment. A user's own items are served in the order that they came in.
//
// Nobody is passed over for ever: what others are served makes their turn later, and the first item of whoever's turn
// it is stays next until it is taken.
//
// Not thread-safe.
template <typename Item>
class FairQueue {
 public:
  void Push(UserId user, uint64_t weight, Item item) {
    const auto [found, is_new] = users_.try_emplace(user);
    User& own = found->second;
    if (is_new) own.standing.arrival = ++arrivals_;
    // Not having asked for anything gives no right to catch up.
    if (own.waiting.empty()) own.standing.served = std::max(own.standing.served, clock_);
    own.waiting.push_back({weight, std::move(item)});
    ++size_;
  }

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }

  // What is served next. There must be one.
  const Item& Next() const { return NextUser()->second.waiting.front().item; }

  // Serves it: it weighs on its user until Finish().
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

  // Of one that was taken, with what it was pushed with.
  void Finish(UserId user, uint64_t weight) { users_.at(user).standing.running -= weight; }

  // Those that wait, in the order in which they would be served if nothing finished or came meanwhile.
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

  // Takes out those that wait and for which `is_unwanted` holds.
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
    Item item;
  };

  // What decides whose turn it is: the least is next.
  struct Standing {
    uint64_t running = 0;  // the weight of what was taken and has not finished
    uint64_t served = 0;   // of all that was taken, and what others had been served before this user came
    uint64_t arrival = 0;  // a number of its own

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

  // A user's items in InOrder().
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

  // Those of whom there is nothing to know: who has been served more than others stays, and who comes back counts as
  // new.
  void ForgetTheIdle() {
    std::erase_if(users_, [this](const auto& user) {
      const Standing& standing = user.second.standing;
      return user.second.waiting.empty() && standing.running == 0 && standing.served <= clock_;
    });
  }

  Users users_;  // who waits, has something running, or has been served more than others
  size_t size_ = 0;
  uint64_t clock_ = 0;  // how far service had come when the last item was taken
  uint64_t arrivals_ = 0;
};

}  // namespace kernix::exec
