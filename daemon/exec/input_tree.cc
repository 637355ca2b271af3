// SPDX-License-Identifier: Apache-2.0
#include "daemon/exec/input_tree.h"

#include <optional>
#include <set>
#include <utility>

#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace kernix::exec {
namespace {

// The modification time of all inputs, 2000-01-01. `#pragma once` in GCC takes two files of the same content for one
// file only if their times agree to the second.
constexpr int64_t kInputTime = 946'684'800'000'000'000;

// The folder of the tree in its own top folder, kMaxMountDepth deep.
std::string TreeFolder(const std::string& top) {
  std::string folder = top;
  for (int i = 0; i < kMaxMountDepth; ++i) folder += "/tree";
  return folder;
}

std::set<std::string> FoldersOf(const std::string& root, const std::vector<InputFile>& files) {
  std::set<std::string> folders;
  for (const InputFile& file : files) folders.insert(Dirname(JoinPath(root, file.path)));
  return folders;
}

}  // namespace

absl::Status WriteInputs(Env& env, const std::string& root, const std::vector<InputFile>& files) {
  for (const std::string& folder : FoldersOf(root, files)) KERNIX_RETURN_IF_ERROR(env.CreateDirectories(folder));
  for (const InputFile& file : files) {
    const std::string path = JoinPath(root, file.path);
    KERNIX_RETURN_IF_ERROR(env.WriteFile(path, *file.content, 0644));
    KERNIX_RETURN_IF_ERROR(env.SetModificationTime(path, kInputTime));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> MakeScratchFolder(Env& env, const std::string& scratch_directory, std::string_view prefix) {
  KERNIX_RETURN_IF_ERROR(env.CreateDirectories(scratch_directory, 0700));
  KERNIX_ASSIGN_OR_RETURN(const std::string made, env.CreateTempDirectory(JoinPath(scratch_directory, prefix)));
  return env.RealPath(made);
}

void RemoveScratchFolder(Env& env, const std::string& folder) {
  const absl::Status removed = env.RemoveTree(folder);
  if (removed.ok()) return;
  LogOf("scratch_not_removed", LogLevel::kWarning, "scratch_not_removed", {{"error", removed.ToString()}});
}

InputTree::~InputTree() {
  const MutexLock lock(mutex_);
  if (!top_.empty()) RemoveScratchFolder(*env_, top_);
}

absl::StatusOr<std::string> InputTree::Stage(Env& env, const std::string& scratch_directory) {
  const MutexLock lock(mutex_);
  if (!top_.empty()) return TreeFolder(top_);
  KERNIX_ASSIGN_OR_RETURN(std::string top, MakeScratchFolder(env, scratch_directory, "tree-"));
  const absl::Status written = Write(env, top);
  if (!written.ok()) {
    RemoveScratchFolder(env, top);
    return written;
  }
  env_ = &env;
  top_ = std::move(top);
  for (InputFile& file : files_) file.content = nullptr;
  return TreeFolder(top_);
}

absl::Status InputTree::Write(Env& env, const std::string& top) {
  const std::string folder = TreeFolder(top);
  KERNIX_RETURN_IF_ERROR(WriteInputs(env, folder, files_));
  written_.clear();
  std::set<std::string> folders;  // includes the folders between the top and the files
  for (const std::string& leaf : FoldersOf(folder, files_)) {
    for (std::string path = leaf; path.size() >= top.size() && folders.insert(path).second;) path = Dirname(path);
  }
  for (const std::string& path : folders) KERNIX_RETURN_IF_ERROR(Watch(env, path, written_, /*follow=*/false));
  for (const InputFile& file : files_) {
    KERNIX_RETURN_IF_ERROR(Watch(env, JoinPath(folder, file.path), written_, /*follow=*/false));
  }
  return absl::OkStatus();
}

std::vector<InputFile> InputTree::Files() {
  const MutexLock lock(mutex_);
  return files_;
}

absl::StatusOr<Content> InputTree::Load(const InputFile& file) {
  if (file.content != nullptr) return file.content;
  const MutexLock lock(mutex_);
  if (top_.empty()) return absl::FailedPreconditionError(StrCat(file.path, " is not staged yet"));
  KERNIX_ASSIGN_OR_RETURN(std::string bytes, env_->ReadFile(JoinPath(TreeFolder(top_), file.path)));
  if (BlobDigestOf(bytes) != file.digest) return absl::DataLossError(StrCat(file.path, " has changed"));
  return MakeContent(std::move(bytes));
}

std::string InputTree::Folder() {
  const MutexLock lock(mutex_);
  return top_.empty() ? "" : TreeFolder(top_);
}

bool InputTree::Intact() {
  const MutexLock lock(mutex_);
  return top_.empty() || Unchanged(*env_, written_, /*follow=*/false);
}

InputTreePtr KeptTrees::Find(const Digest& id) {
  InputTreePtr known;
  {
    const MutexLock lock(mutex_);
    if (const InputTreePtr* kept = trees_.Find(id)) known = *kept;
  }
  if (known == nullptr || known->Intact()) return known;
  Drop(known);
  return nullptr;
}

InputTreePtr KeptTrees::Keep(const Digest& id, InputTreePtr tree, uint64_t bytes) {
  std::vector<std::pair<Digest, InputTreePtr>> surplus;  // declared before the lock: files are removed after the unlock
  const MutexLock lock(mutex_);
  if (const InputTreePtr* known = trees_.Find(id)) return *known;
  surplus = trees_.Put(id, tree, bytes);
  return tree;
}

void KeptTrees::Drop(const InputTreePtr& tree) {
  std::optional<InputTreePtr> dropped;  // as above
  const MutexLock lock(mutex_);
  dropped = trees_.TakeOldest([&](const InputTreePtr& kept) { return kept == tree; });
}

void KeptTrees::DropUnstaged(const std::vector<MountedTree>& trees) {
  for (const MountedTree& mounted : trees) {
    if (mounted.tree->Folder().empty()) Drop(mounted.tree);
  }
}

}  // namespace kernix::exec
