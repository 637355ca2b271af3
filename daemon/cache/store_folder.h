// SPDX-License-Identifier: Apache-2.0
//
// The folder of a store, and the blobs in it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/digest.h"
#include "common/base/mutex.h"
#include "common/os/env.h"
#include "common/os/file_identity.h"
#include "daemon/cache/entry.h"
#include "daemon/cache/index.h"

namespace kernix::cache {

// The error for the user if `status` kept the store in `directory` from working: RESOURCE, with what to do. OK stays
// OK.
absl::Status StoreError(const std::string& directory, const absl::Status& status);

struct StorePaths {
  explicit StorePaths(const std::string& directory);

  std::string directory, version, blobs, private_directory, lock, index, index_copy, steps, toolchains, scratch;
};

// Creates the folder, and refuses one that belongs to another user or that others may write to. Takes its lock
// (released when the result is destroyed), checks or writes the layout's number, makes missing parts of the store, and
// empties the scratch folder. A process that is about to end may still hold the lock: waits two seconds for it.
// `socket`: see CacheOptions.
absl::StatusOr<std::unique_ptr<FileLock>> ClaimStore(Env& env, const StorePaths& paths, const std::string& socket = "");

// The files of a store while a process uses it. Call it once the store is claimed and its index open.
std::unique_ptr<OwnFiles> FilesOfStore(Env& env, const StorePaths& paths);

// Renames the index's files to "index.sqlite.damaged...", replacing an older such set.
absl::Status MoveIndexAside(Env& env, const StorePaths& paths);

// Blobs as files, named by digest, in one flat folder. Current file systems find a name among a hundred thousand as
// fast as among ten, and a new file needs only a sync of this folder to survive a power loss.

// Reads a file's content only if the file has changed since the last read. Thread-safe. Does not know who needs a blob:
// its owner must keep a Remove() from racing with a Put() of the same content.
class BlobFolder {
 public:
  // The folder must exist. `env` must outlive this object.
  BlobFolder(Env& env, std::string directory) : env_(env), directory_(std::move(directory)) {}

  // The path at which a process of this host finds the blob, whether or not it exists.
  std::string PathOf(const Digest& digest) const;

  // Returns once `content` is on the disk. Keeps a sound blob that already exists; replaces any other.
  absl::Status Put(const Digest& digest, std::string_view content);

  // Whether the blob exists with the right size and content. A blob that cannot be examined (no descriptor left, a
  // failing disk) is an error, which says nothing about the content.
  absl::StatusOr<bool> IsSound(const Digest& digest, uint64_t size);

  // Has the next IsSound() read the content, even if the file seems unchanged.
  void Forget(const Digest& digest);

  // Opens the blob for reading piece by piece, even if it is removed meanwhile. kNotFound if there is no such blob,
  // kDataLoss if its content does not match its digest.
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const Digest& digest);

  // OK if there is no such blob.
  absl::Status Remove(const Digest& digest);

  // The names of all files in the folder.
  absl::StatusOr<std::vector<std::string>> Names() { return env_.ListDirectory(directory_); }

  // Removes everything that is not in `keep`, and returns what is left. Call only at the start, while nothing else uses
  // the store.
  absl::StatusOr<absl::flat_hash_set<Digest>> RemoveAllBut(const absl::flat_hash_set<Digest>& keep);

 private:
  absl::StatusOr<bool> Verify(const Digest& digest, ReadableFile& file);
  void Remember(const Digest& digest, const FileIdentity& identity);
  bool Remembers(const Digest& digest, const FileIdentity& identity);

  Env& env_;
  const std::string directory_;
  Mutex mutex_;
  absl::flat_hash_map<Digest, FileIdentity> verified_ ABSL_GUARDED_BY(mutex_);
};

// Several stores as one: the first is written, the others are only read. An image or a site's folder brings artifacts.

// A store that is only read: nothing in it is locked or written, so it may lie on a read-only file system.
struct Layer {
  std::unique_ptr<Index> index;
  std::unique_ptr<BlobFolder> blobs;
};

// `env` must outlive it. Opens the store in `directory`, as it is now: entries that others add to it later do not show.
// Its index is copied to `scratch`, a path without a file, since SQLite writes beside an index that it reads. Errors
// say what to do: the folder is not a store, cannot be read, or others than root and this user may write to it.
absl::StatusOr<Layer> OpenLayer(Env& env, const std::string& directory, const std::string& scratch);

}  // namespace kernix::cache
