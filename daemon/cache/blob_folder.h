// SPDX-License-Identifier: Apache-2.0
//
// Blobs as files, named by digest, in one folder. It is flat: today's file systems find a name among a hundred thousand
// as fast as among ten, and syncing this one folder is all that a new file needs to survive a power loss.
#pragma once

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "common/base/mutex.h"
#include "common/os/file_identity.h"
#include "daemon/cache/blob_store.h"

namespace kernix::cache {

// Reads a file's content only when the file has changed since it was last read.
class BlobFolder final : public BlobStore {
 public:
  // The folder must be there. `env` must outlive this.
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
