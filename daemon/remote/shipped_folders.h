// SPDX-License-Identifier: Apache-2.0
//
// Folders of tools that workers do not have: they travel with an action, as part of its input root, and to an engine
// only once.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/os/env.h"
#include "common/os/file_identity.h"
#include "daemon/exec/blob.h"

namespace kernix::remote {

// A folder as an engine knows it.
struct ShippedFolder {
  exec::BlobDigest digest;                           // of its Directory
  std::map<exec::BlobDigest, std::string> messages;  // the Directories
  std::map<exec::BlobDigest, std::string> files;     // where the files lie on this machine
  std::vector<WatchedFile> seen;                     // all that it was made from
};

// Thread-safe.
class ShippedFolders {
 public:
  // `env` must outlive it. `folders`: the absolute paths of those that may be shipped.
  ShippedFolders(Env& env, std::vector<std::string> folders) : env_(env), folders_(std::move(folders)) {}

  // Whether `path` is one of the folders, or lies in one.
  bool Ships(const std::string& path) const;

  // The folder at `path`, which Ships(). Reads all its files the first time, and again if one has changed. A link that
  // stays in the folder remains one, any other is replaced by the file that it leads to. An error if something cannot
  // be read, or is neither file nor folder.
  absl::StatusOr<std::shared_ptr<const ShippedFolder>> Get(const std::string& path);

 private:
  Env& env_;
  const std::vector<std::string> folders_;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<const ShippedFolder>> known_ ABSL_GUARDED_BY(mutex_);  // by path
};

}  // namespace kernix::remote
