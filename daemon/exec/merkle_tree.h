// SPDX-License-Identifier: Apache-2.0
//
// The digest of a folder's content: a Merkle tree of Directory messages, as the Remote Execution API defines it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/exec/blob.h"
#include "daemon/exec/input_file.h"

namespace kernix::exec {

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

}  // namespace kernix::exec
