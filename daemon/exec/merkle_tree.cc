// SPDX-License-Identifier: Apache-2.0
#include "daemon/exec/merkle_tree.h"

#include <utility>

#include "daemon/exec/remote_execution.h"

namespace kernix::exec {

MerkleTree& MerkleTree::FolderOf(std::string_view& path) {
  MerkleTree* folder = this;
  for (size_t slash = path.find('/'); slash != std::string_view::npos; slash = path.find('/')) {
    const std::string_view name = path.substr(0, slash);
    const auto found = folder->folders_.find(name);
    folder = found != folder->folders_.end() ? &found->second : &folder->folders_[std::string(name)];
    path.remove_prefix(slash + 1);
  }
  return *folder;
}

void MerkleTree::AddFile(std::string_view path, const BlobDigest& content, bool executable) {
  FolderOf(path).files_[std::string(path)] = {content, executable};
}

void MerkleTree::AddFiles(const std::vector<InputFile>& files) {
  for (const InputFile& file : files) AddFile(file.path, file.digest, file.executable);
}

void MerkleTree::AddFolder(std::string_view path, const BlobDigest& digest) {
  FolderOf(path).known_folders_[std::string(path)] = digest;
}

void MerkleTree::AddFolder(std::string_view path, MerkleTree folder) {
  FolderOf(path).folders_[std::string(path)] = std::move(folder);
}

void MerkleTree::AddLink(std::string_view path, std::string target) {
  FolderOf(path).links_[std::string(path)] = std::move(target);
}

BlobDigest MerkleTree::Write(std::map<BlobDigest, std::string>* messages) const {
  std::map<std::string_view, BlobDigest> folders(known_folders_.begin(), known_folders_.end());
  for (const auto& [name, folder] : folders_) folders[name] = folder.Write(messages);
  reapi::Directory directory;
  for (const auto& [name, file] : files_) {
    reapi::FileNode& node = *directory.add_files();
    node.set_name(name);
    *node.mutable_digest() = ToReapi(file.content);
    node.set_is_executable(file.executable);
  }
  for (const auto& [name, digest] : folders) {
    reapi::DirectoryNode& node = *directory.add_directories();
    node.set_name(std::string(name));
    *node.mutable_digest() = ToReapi(digest);
  }
  for (const auto& [name, target] : links_) {
    reapi::SymlinkNode& node = *directory.add_symlinks();
    node.set_name(name);
    node.set_target(target);
  }
  return DigestOfMessage(directory, messages);
}

}  // namespace kernix::exec
