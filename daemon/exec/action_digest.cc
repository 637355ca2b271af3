// SPDX-License-Identifier: Apache-2.0
#include "daemon/exec/action_digest.h"

#include <algorithm>
#include <functional>

#include "daemon/exec/merkle_tree.h"
#include "daemon/exec/remote_execution.h"

namespace kernix::exec {
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
