// SPDX-License-Identifier: Apache-2.0
#include "daemon/exec/kept_trees.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace kernix::exec {

InputTreePtr KeptTrees::Find(const Digest& id) {
  const InputTreePtr known = Use(id);
  if (known == nullptr || known->Intact()) return known;
  Trees surplus;  // declared before the lock, so that it is destroyed, and its files removed, after the unlock
  const MutexLock lock(mutex_);
  const auto place = places_.find(id);
  if (place != places_.end() && place->second->tree == known) Drop(place->second, surplus);
  return nullptr;
}

InputTreePtr KeptTrees::Use(const Digest& id) {
  const MutexLock lock(mutex_);
  const auto place = places_.find(id);
  if (place == places_.end()) return nullptr;
  trees_.splice(trees_.begin(), trees_, place->second);
  return place->second->tree;
}

InputTreePtr KeptTrees::Keep(const Digest& id, InputTreePtr tree, uint64_t bytes) {
  Trees surplus;  // as above
  const MutexLock lock(mutex_);
  if (const auto old = places_.find(id); old != places_.end()) return old->second->tree;
  trees_.push_front({id, tree, bytes});
  places_[id] = trees_.begin();
  bytes_ += bytes;
  while (bytes_ > limit_bytes_) Drop(std::prev(trees_.end()), surplus);
  return tree;
}

void KeptTrees::Drop(const Digest& id) {
  Trees surplus;  // as above
  const MutexLock lock(mutex_);
  if (const auto place = places_.find(id); place != places_.end()) Drop(place->second, surplus);
}

void KeptTrees::DropUnstaged(const std::vector<MountedTree>& trees) {
  Trees surplus;  // as above
  for (const MountedTree& mounted : trees) {
    if (mounted.tree->Staged()) continue;
    const MutexLock lock(mutex_);
    const auto kept = std::find_if(trees_.begin(), trees_.end(), [&](const Kept& k) { return k.tree == mounted.tree; });
    if (kept != trees_.end()) Drop(kept, surplus);
  }
}

void KeptTrees::Drop(Trees::iterator kept, Trees& surplus) {
  bytes_ -= kept->bytes;
  places_.erase(kept->id);
  surplus.splice(surplus.end(), trees_, kept);
}

}  // namespace kernix::exec
