// SPDX-License-Identifier: Apache-2.0
#include "daemon/exec/action_digest.h"

#include <algorithm>

#include "daemon/exec/merkle_tree.h"
#include "daemon/exec/remote_execution.h"

namespace kernix::exec {
namespace {

BlobDigest DigestOfCommand(const Action& action) {
  reapi::Command command;
  for (const std::string& word : action.argv) command.add_arguments(word);
  for (const auto& [name, value] : action.environment) {
    reapi::Command::EnvironmentVariable& variable = *command.add_environment_variables();
    variable.set_name(name);
    variable.set_value(value);
  }
  for (const std::string& path : action.outputs) command.add_output_paths(path);
  std::sort(command.mutable_output_paths()->begin(), command.mutable_output_paths()->end());
  return DigestOfMessage(command);
}

BlobDigest DigestOfInputRoot(const Action& action, const std::vector<InputFile>& more_inputs) {
  MerkleTree root;
  for (const std::vector<InputFile>* inputs : {&action.inputs, &more_inputs}) {
    for (const InputFile& input : *inputs) root.AddFile(input.path, input.digest, input.executable);
  }
  if (action.trees != nullptr) {
    for (const MountedTree& mounted : *action.trees) root.AddFolder(mounted.path, mounted.digest);
  }
  return root.Digest();
}

}  // namespace

BlobDigest DigestOfAction(const Action& action, const std::vector<InputFile>& more_inputs) {
  reapi::Action message;
  *message.mutable_command_digest() = ToReapi(DigestOfCommand(action));
  *message.mutable_input_root_digest() = ToReapi(DigestOfInputRoot(action, more_inputs));
  message.set_salt(action.salt.Raw());
  return DigestOfMessage(message);
}

}  // namespace kernix::exec
