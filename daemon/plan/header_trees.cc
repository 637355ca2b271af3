// SPDX-License-Identifier: Apache-2.0
#include "daemon/plan/header_trees.h"

#include <string_view>
#include <utility>

namespace kernix::build {
namespace {

const exec::Content kEmpty = exec::MakeContent("");  // content of marker files

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
  if (exec::InputTreePtr known = kept_.Find(id); known != nullptr) return known;
  uint64_t bytes = 0;
  exec::InputTreePtr tree = MakeTree(files, contents, bytes);
  return kept_.Keep(id, std::move(tree), bytes);
}

}  // namespace kernix::build
