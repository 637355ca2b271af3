// SPDX-License-Identifier: Apache-2.0
#include "daemon/exec/action_digest.h"

#include <algorithm>
#include <functional>
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

namespace {

using Messages = std::map<BlobDigest, std::string>;
using Platform = std::map<std::string, std::string>;

void SetPlatform(const Platform& platform, const std::function<reapi::Platform*()>& message) {
  for (const auto& [name, value] : platform) {
    reapi::Platform::Property& property = *message()->add_properties();
    property.set_name(name);
    property.set_value(value);
  }
}

reapi::Command CommandOf(const Action& action, const Platform& platform) {
  reapi::Command command;
  for (const std::string& word : action.argv) command.add_arguments(word);
  for (const auto& [name, value] : action.environment) {
    reapi::Command::EnvironmentVariable& variable = *command.add_environment_variables();
    variable.set_name(name);
    variable.set_value(value);
  }
  for (const std::string& path : action.outputs) command.add_output_paths(path);
  std::sort(command.mutable_output_paths()->begin(), command.mutable_output_paths()->end());
  SetPlatform(platform, [&] { return command.mutable_platform(); });
  return command;
}

std::vector<MountedTree> TreesOf(const Action& action) {
  return action.trees == nullptr ? std::vector<MountedTree>() : *action.trees;
}

BlobDigest DigestOfParts(const Action& action, const reapi::Command& command, const BlobDigest& input_root,
                         const Platform& platform, Messages* messages) {
  reapi::Action message;
  *message.mutable_command_digest() = ToReapi(DigestOfMessage(command, messages));
  *message.mutable_input_root_digest() = ToReapi(input_root);
  message.set_salt(action.salt.Raw());
  SetPlatform(platform, [&] { return message.mutable_platform(); });
  return DigestOfMessage(message, messages);
}

}  // namespace

BlobDigest DigestOfAction(const Action& action, const std::vector<InputFile>& more_inputs) {
  MerkleTree root(action.inputs);
  root.AddFiles(more_inputs);
  for (const MountedTree& mounted : TreesOf(action)) root.AddFolder(mounted.path, mounted.digest);
  return DigestOfParts(action, CommandOf(action, {}), root.Digest(), {}, nullptr);
}

ActionMessages MessagesOf(const Action& action, const EngineForm& form) {
  ActionMessages all;
  MerkleTree root(action.inputs);
  for (const MountedTree& mounted : TreesOf(action)) root.AddFolder(mounted.path, MerkleTree(mounted.tree->Files()));
  for (const InputLink& link : form.links) root.AddLink(link.path, link.target);
  for (const auto& [path, digest] : form.folders) root.AddFolder(path, digest);
  const BlobDigest input_root = root.Write(all.messages);
  all.action = DigestOfParts(action, CommandOf(action, form.platform), input_root, form.platform, &all.messages);
  return all;
}

}  // namespace kernix::exec
