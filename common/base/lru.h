// SPDX-License-Identifier: Apache-2.0
//
// What is used again stays, in a bounded place.
#pragma once

#include <cstddef>
#include <iterator>
#include <list>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "common/base/mutex.h"

namespace kernix {

// A map of at most `limit` elements. The least recently used entry makes room for a new one. Not thread-safe.
template <typename Key, typename Value>
class Lru {
 public:
  explicit Lru(size_t limit) : limit_(limit) {}

  // The value of `key`, and marks it as used now; null if there is none. Valid until the next change.
  Value* Find(const Key& key) {
    const auto found = places_.find(key);
    if (found == places_.end()) return nullptr;
    elements_.splice(elements_.begin(), elements_, found->second);
    return &found->second->second;
  }

  bool Contains(const Key& key) const { return places_.contains(key); }

  // Adds or replaces a value.
  void Put(const Key& key, Value value) {
    if (Value* const old = Find(key); old != nullptr) {
      *old = std::move(value);
      return;
    }
    while (!elements_.empty() && elements_.size() >= limit_) Erase(std::prev(elements_.end()));
    elements_.emplace_front(key, std::move(value));
    places_.emplace(key, elements_.begin());
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
  }

  size_t size() const { return elements_.size(); }
  // From the one that was used last.
  auto begin() const { return elements_.begin(); }
  auto end() const { return elements_.end(); }

 private:
  using Elements = std::list<std::pair<const Key, Value>>;

  void Erase(typename Elements::iterator element) {
    places_.erase(element->first);
    elements_.erase(element);
  }

  const size_t limit_;
  Elements elements_;
  absl::flat_hash_map<Key, typename Elements::iterator> places_;
};

// The same for several threads.
template <typename Key, typename Value>
class SharedLru {
 public:
  explicit SharedLru(size_t limit) : elements_(limit) {}

  // A copy.
  std::optional<Value> Find(const Key& key) {
    const MutexLock lock(mutex_);
    const Value* const found = elements_.Find(key);
    return found == nullptr ? std::nullopt : std::optional(*found);
  }

  void Put(const Key& key, Value value) {
    const MutexLock lock(mutex_);
    elements_.Put(key, std::move(value));
  }

 private:
  Mutex mutex_;
  Lru<Key, Value> elements_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix
