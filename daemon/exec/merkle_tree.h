// SPDX-License-Identifier: Apache-2.0
//
// The digest of a folder's content: a Merkle tree of Directory messages, as the Remote Execution API has it.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "daemon/exec/blob_digest.h"

namespace kernix::exec {

class MerkleTree {
 public:
  // Paths are relative, stay inside, and name each file and folder once.
  void AddFile(std::string_view path, const BlobDigest& content, bool executable = false);

  // A folder whose own digest is known, and in which no other path lies.
  void AddFolder(std::string_view path, const BlobDigest& digest);

  // Of the Directory that is the root.
  BlobDigest Digest() const;

 private:
  struct File {
    BlobDigest content;
    bool executable = false;
  };

  // The folder of `path`, made when absent; `path` becomes the name in it.
  MerkleTree& FolderOf(std::string_view& path);

  std::map<std::string, File, std::less<>> files_;
  std::map<std::string, BlobDigest, std::less<>> known_folders_;
  std::map<std::string, MerkleTree, std::less<>> folders_;
};

}  // namespace kernix::exec
