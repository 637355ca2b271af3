// SPDX-License-Identifier: Apache-2.0
//
// Blobs as files, named by digest, in one flat folder. Current file systems find a name among a hundred thousand as
// fast as among ten, and a new file needs only a sync of this folder to survive a power loss.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
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
  absl::Status Put(const Digest& digest, std::string_view content, Durability durability) override;
  absl::StatusOr<bool> IsSound(const Digest& digest, uint64_t size) override;
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const Digest& digest) override;
  absl::Status Remove(const Digest& digest) override;
  absl::Status RemoveAllBut(const absl::flat_hash_set<Digest>& keep) override;

 private:
  absl::Status Write(const std::string& path, std::string_view content, Durability durability);
  absl::StatusOr<bool> Verify(const Digest& digest, ReadableFile& file);
  void Remember(const Digest& digest, const FileIdentity& identity, Durability durability = Durability::kSurvives);
  bool Remembers(const Digest& digest, const FileIdentity& identity);
  bool MayBeLost(const Digest& digest);

  Env& env_;
  const std::string directory_;
  std::atomic<uint64_t> written_{0};
  Mutex mutex_;
  absl::flat_hash_map<Digest, FileIdentity> verified_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<Digest> not_awaited_ ABSL_GUARDED_BY(mutex_);  // of those that this process has written
};

}  // namespace kernix::cache
