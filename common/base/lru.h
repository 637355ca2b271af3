// SPDX-License-Identifier: Apache-2.0
//
// What is used again stays, in a bounded place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "common/base/mutex.h"

namespace kernix {

// A map of at most `limit` elements or, if they say what they cost, elements of at most that cost together. The least
// recently used ones make room for a new one. Not thread-safe.
template <typename Key, typename Value>
class Lru {
 public:
  explicit Lru(uint64_t limit) : limit_(limit) {}

  // The value of `key`, and marks it as used now; null if there is none. Valid until the next change.
  Value* Find(const Key& key) {
    const auto found = places_.find(key);
    if (found == places_.end()) return nullptr;
    elements_.splice(elements_.begin(), elements_, found->second.element);
    return &found->second.element->second;
  }

  bool Contains(const Key& key) const { return places_.contains(key); }

  // Adds or replaces a value. Returns what had to make room: the value itself if it costs more than the limit.
  std::vector<std::pair<Key, Value>> Put(const Key& key, Value value, uint64_t cost = 1) {
    Drop(key);
    std::vector<std::pair<Key, Value>> dropped;
    if (cost > limit_) {
      dropped.emplace_back(key, std::move(value));
      return dropped;
    }
    elements_.emplace_front(key, std::move(value));
    places_.emplace(key, Place{elements_.begin(), cost});
    used_ += cost;
    while (used_ > limit_) {
      dropped.emplace_back(elements_.back().first, std::move(elements_.back().second));
      Erase(std::prev(elements_.end()));
    }
    return dropped;
  }

  void Drop(const Key& key) {
    const auto found = places_.find(key);
    if (found != places_.end()) Erase(found->second.element);
  }

  // Drops the element that was used longest ago of those that match. Nothing if none does.
  template <typename Matches>
  std::optional<Value> TakeOldest(const Matches& matches) {
    for (auto element = elements_.end(); element != elements_.begin();) {
      if (!matches((--element)->second)) continue;
      std::optional<Value> taken(std::move(element->second));
      Erase(element);
      return taken;
    }
    return std::nullopt;
  }
  std::optional<Value> TakeOldest() {
    return TakeOldest([](const Value&) { return true; });
  }

  void Clear() {
    places_.clear();
    elements_.clear();
    used_ = 0;
  }

  uint64_t used() const { return used_; }  // of the limit
  size_t size() const { return elements_.size(); }
  // From the one that was used last.
  auto begin() const { return elements_.begin(); }
  auto end() const { return elements_.end(); }

 private:
  using Elements = std::list<std::pair<const Key, Value>>;

  struct Place {
    typename Elements::iterator element;
    uint64_t cost;
  };

  void Erase(typename Elements::iterator element) {
    used_ -= places_.extract(element->first).mapped().cost;
    elements_.erase(element);
  }

  const uint64_t limit_;
  uint64_t used_ = 0;
  Elements elements_;
  absl::flat_hash_map<Key, Place> places_;
};

// The same for several threads.
template <typename Key, typename Value>
class SharedLru {
 public:
  explicit SharedLru(uint64_t limit) : elements_(limit) {}

  // A copy.
  std::optional<Value> Find(const Key& key) {
    const MutexLock lock(mutex_);
    const Value* const found = elements_.Find(key);
    return found == nullptr ? std::nullopt : std::optional(*found);
  }

  void Put(const Key& key, Value value, uint64_t cost = 1) {
    const MutexLock lock(mutex_);
    elements_.Put(key, std::move(value), cost);
  }

 private:
  Mutex mutex_;
  Lru<Key, Value> elements_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix
