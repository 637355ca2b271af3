// SPDX-License-Identifier: Apache-2.0
#include "daemon/plan/header_trees.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace kernix::build {
namespace {

const exec::Content kEmpty = std::make_shared<const std::string>();  // content of marker files

// The id of the `copy`-th root (from 0) with these files in one build.
Digest IdOf(const Digest& files, uint64_t copy) {
  if (copy == 0) return files;
  return CanonicalHasher("kernix-header-tree-copy").Field("files", files).Field("copy", copy).Finish();
}

exec::InputTreePtr MakeTree(const std::vector<TreeFile>& files, const HeaderContents& contents, uint64_t& bytes) {
  std::vector<exec::InputFile> inputs;
  inputs.reserve(files.size());
  std::string_view previous;
  for (const TreeFile& file : files) {
    bytes += NewFolders(file.path, previous) * kBlockBytes;
    previous = file.path;
    const exec::Content content = file.digest.size == 0 ? kEmpty : contents.at(file.digest.hash);
    bytes += content->size() + kBlockBytes;
    inputs.push_back({file.path, file.digest, content});
  }
  return std::make_shared<exec::InputTree>(std::move(inputs));
}

}  // namespace

std::vector<exec::InputTreePtr> HeaderTrees::Get(const std::vector<const RootTree*>& roots,
                                                 const HeaderContents& contents) {
  absl::flat_hash_map<Digest, uint64_t> copies;
  std::vector<exec::InputTreePtr> trees;
  for (const RootTree* root : roots) {
    if (root->files.empty()) continue;
    const Digest& digest = root->digest.hash;
    trees.push_back(Get(IdOf(digest, copies[digest]++), root->files, contents));
  }
  return trees;
}

exec::InputTreePtr HeaderTrees::Get(const Digest& id, const std::vector<TreeFile>& files,
                                    const HeaderContents& contents) {
  exec::InputTreePtr known = Find(id);
  if (known != nullptr && known->Intact()) return known;
  uint64_t bytes = 0;
  exec::InputTreePtr tree = MakeTree(files, contents, bytes);
  return Keep(id, std::move(tree), bytes, known);
}

void HeaderTrees::DropUnstaged(const std::vector<exec::MountedTree>& trees) {
  Trees surplus;  // declared before the lock, so that it is destroyed, and its files removed, after the unlock
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
  Trees surplus;  // declared before the lock, so that it is destroyed, and its files removed, after the unlock
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
