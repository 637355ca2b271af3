// SPDX-License-Identifier: Apache-2.0
#include "daemon/build/header_trees.h"

#include <iterator>
#include <utility>

namespace kernix::build {
namespace {

// What a small file takes on the disk besides its bytes.
constexpr uint64_t kBlockBytes = 4096;

Digest IdOf(const std::vector<TreeFile>& files) {
  CanonicalHasher hasher("kernix-header-tree");
  hasher.List("files", files.size());
  for (const TreeFile& file : files) hasher.Field("path", file.file.path).Field("content", file.digest);
  return hasher.Finish();
}

exec::InputTreePtr MakeTree(const std::vector<TreeFile>& files, uint64_t& bytes) {
  std::vector<exec::InputFile> inputs;
  inputs.reserve(files.size());
  for (const TreeFile& file : files) {
    bytes += file.file.content->size() + kBlockBytes;
    inputs.push_back(file.file);
  }
  return std::make_shared<exec::InputTree>(std::move(inputs));
}

}  // namespace

exec::InputTreePtr HeaderTrees::Get(const std::vector<TreeFile>& files) {
  const Digest id = IdOf(files);
  if (exec::InputTreePtr known = Find(id); known != nullptr && known->Intact()) return known;
  uint64_t bytes = 0;
  exec::InputTreePtr tree = MakeTree(files, bytes);
  return Keep(id, std::move(tree), bytes);
}

exec::InputTreePtr HeaderTrees::Find(const Digest& id) {
  const MutexLock lock(mutex_);
  const auto place = places_.find(id);
  if (place == places_.end()) return nullptr;
  trees_.splice(trees_.begin(), trees_, place->second);
  return place->second->tree;
}

exec::InputTreePtr HeaderTrees::Keep(const Digest& id, exec::InputTreePtr tree, uint64_t bytes) {
  Trees surplus;  // goes, with its files, when the lock is free
  const MutexLock lock(mutex_);
  if (const auto old = places_.find(id); old != places_.end()) Drop(old->second, surplus);
  for (auto kept = trees_.begin(); kept != trees_.end();) {
    const auto next = std::next(kept);
    if (kept->tree.use_count() == 1 && !kept->tree->Staged()) Drop(kept, surplus);
    kept = next;
  }
  trees_.push_front({id, tree, bytes});
  places_[id] = trees_.begin();
  bytes_ += bytes;
  while (bytes_ > limit_bytes_) Drop(std::prev(trees_.end()), surplus);
  return tree;
}

void HeaderTrees::Drop(Trees::iterator kept, Trees& surplus) {
  bytes_ -= kept->bytes;
  places_.erase(kept->id);
  surplus.splice(surplus.end(), trees_, kept);
}

}  // namespace kernix::build
