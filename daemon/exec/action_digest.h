// SPDX-License-Identifier: Apache-2.0
//
// The digest of an action, as the Remote Execution API defines it: it covers the command, the input root and the
// identity of the tools.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "daemon/exec/action.h"
#include "daemon/exec/blob.h"

namespace kernix::exec {

// Covers argv, environment, outputs, the digests of inputs and trees, and the salt. Does not cover how the action runs
// on this machine: links to tools, local words and paths, time limit, memory, jobs. `more_inputs`: inputs that `action`
// does not list yet.
BlobDigest DigestOfAction(const Action& action, const std::vector<InputFile>& more_inputs = {});

// The parts of an action that only an engine's digest covers, beside those of the digest above.
struct EngineForm {
  std::vector<InputLink> links = {};                 // that lie in the input root
  std::map<std::string, BlobDigest> folders = {};    // more folders of the input root, by path
  std::map<std::string, std::string> platform = {};  // what the worker must have
};

// The messages of an action.
struct ActionMessages {
  BlobDigest action;                           // of the Action
  std::map<BlobDigest, std::string> messages;  // Action, Command, and each Directory but those of EngineForm::folders
};

// With an empty `form`, the Action is the one that DigestOfAction() digests. Reads no content of a file.
ActionMessages MessagesOf(const Action& action, const EngineForm& form);

}  // namespace kernix::exec
