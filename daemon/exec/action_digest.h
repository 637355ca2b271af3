// SPDX-License-Identifier: Apache-2.0
//
// The digests of an action and of a folder's content, as the Remote Execution API defines them. That of an action
// covers the command, the input root and the identity of the tools.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/exec/action.h"
#include "daemon/exec/blob.h"

namespace kernix::exec {

// A Merkle tree of Directory messages.
class MerkleTree {
 public:
  MerkleTree() = default;
  explicit MerkleTree(const std::vector<InputFile>& files) { AddFiles(files); }

  // Paths must be relative, must not leave the tree, and must name each file and folder once.
  void AddFile(std::string_view path, const BlobDigest& content, bool executable = false);
  void AddFiles(const std::vector<InputFile>& files);

  // Adds a folder with a known digest. No other path may lie in it.
  void AddFolder(std::string_view path, const BlobDigest& digest);

  // Adds a folder with all that is in it. No other path may lie in it.
  void AddFolder(std::string_view path, MerkleTree folder);

  void AddLink(std::string_view path, std::string target);

  // The digest of the root Directory.
  BlobDigest Digest() const { return Write(nullptr); }

  // The same. Adds the Directory messages of the root and of all folders but those with a known digest.
  BlobDigest Write(std::map<BlobDigest, std::string>& messages) const { return Write(&messages); }

 private:
  struct File {
    BlobDigest content;
    bool executable = false;
  };

  BlobDigest Write(std::map<BlobDigest, std::string>* messages) const;

  // Returns the folder that contains `path`, creating it if needed. `path` becomes the name in that folder.
  MerkleTree& FolderOf(std::string_view& path);

  std::map<std::string, File, std::less<>> files_;
  std::map<std::string, BlobDigest, std::less<>> known_folders_;
  std::map<std::string, MerkleTree, std::less<>> folders_;
  std::map<std::string, std::string, std::less<>> links_;
};

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
