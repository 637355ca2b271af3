// SPDX-License-Identifier: Apache-2.0
//
// Blobs as files, named by digest, in one flat folder. Current file systems find a name among a hundred thousand as
// fast as among ten, and a new file needs only a sync of this folder to survive a power loss.
#pragma once

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "common/base/mutex.h"
#include "common/os/file_identity.h"
#include "daemon/cache/blob_store.h"

namespace kernix::cache {

// Reads a file's content only if the file has changed since the last read.
class BlobFolder final : public BlobStore {
 public:
  // The folder must exist. `env` must outlive this object.
  BlobFolder(Env& env, std::string directory) : env_(env), directory_(std::move(directory)) {}

  std::string PathOf(const Digest& digest) const override;
  absl::Status Put(const Digest& digest, std::string_view content) override;
  absl::StatusOr<bool> IsSound(const Digest& digest, uint64_t size) override;
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const Digest& digest) override;
  absl::Status Remove(const Digest& digest) override;
  absl::Status RemoveAllBut(const absl::flat_hash_set<Digest>& keep) override;

 private:
  absl::StatusOr<bool> Verify(const Digest& digest, ReadableFile& file);
  void Remember(const Digest& digest, const FileIdentity& identity);
  bool Remembers(const Digest& digest, const FileIdentity& identity);

  Env& env_;
  const std::string directory_;
  Mutex mutex_;
  absl::flat_hash_map<Digest, FileIdentity> verified_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::cache
