// SPDX-License-Identifier: Apache-2.0
#include "daemon/plan/header_trees.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace kernix::build {
namespace {

// What a small file takes on the disk besides its bytes.
constexpr uint64_t kBlockBytes = 4096;

Digest DigestOfFiles(const std::vector<TreeFile>& files) {
  CanonicalHasher hasher("kernix-header-tree");
  hasher.List("files", files.size());
  for (const TreeFile& file : files) hasher.Field("path", file.file.path).Field("content", file.digest);
  return hasher.Finish();
}

// Of the `copy`-th root of a build with these files, from 0.
Digest IdOf(const Digest& files, uint64_t copy) {
  if (copy == 0) return files;
  return CanonicalHasher("kernix-header-tree-copy").Field("files", files).Field("copy", copy).Finish();
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

std::vector<exec::InputTreePtr> HeaderTrees::Get(const std::vector<std::vector<TreeFile>>& roots) {
  absl::flat_hash_map<Digest, uint64_t> copies;
  std::vector<exec::InputTreePtr> trees;
  for (const std::vector<TreeFile>& files : roots) {
    if (files.empty()) {
      trees.push_back(nullptr);
      continue;
    }
    const Digest digest = DigestOfFiles(files);
    trees.push_back(Get(IdOf(digest, copies[digest]++), files));
  }
  return trees;
}

exec::InputTreePtr HeaderTrees::Get(const Digest& id, const std::vector<TreeFile>& files) {
  exec::InputTreePtr known = Find(id);
  if (known != nullptr && known->Intact()) return known;
  uint64_t bytes = 0;
  exec::InputTreePtr tree = MakeTree(files, bytes);
  return Keep(id, std::move(tree), bytes, known);
}

void HeaderTrees::DropUnstaged(const std::vector<exec::MountedTree>& trees) {
  Trees surplus;  // goes, with its files, when the lock is free
  for (const exec::MountedTree& mounted : trees) {
    if (mounted.tree->Staged()) continue;
    const MutexLock lock(mutex_);
    const auto kept = std::find_if(trees_.begin(), trees_.end(), [&](const Kept& k) { return k.tree == mounted.tree; });
    if (kept != trees_.end()) Drop(kept, surplus);
  }
}

exec::InputTreePtr HeaderTrees::Find(const Digest& id) {
  const MutexLock lock(mutex_);
  const auto place = places_.find(id);
  if (place == places_.end()) return nullptr;
  trees_.splice(trees_.begin(), trees_, place->second);
  return place->second->tree;
}

exec::InputTreePtr HeaderTrees::Keep(const Digest& id, exec::InputTreePtr tree, uint64_t bytes,
                                     const exec::InputTreePtr& damaged) {
  Trees surplus;  // goes, with its files, when the lock is free
  const MutexLock lock(mutex_);
  if (const auto old = places_.find(id); old != places_.end()) {
    if (old->second->tree != damaged) return old->second->tree;
    Drop(old->second, surplus);
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
