// SPDX-License-Identifier: Apache-2.0
//
// Files named by the SHA-256 of their content, in one folder. A flat one: file systems of today find a name among a
// hundred thousand as fast, and the sync of this folder is all that a new file needs to survive a power loss.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/digest.h"
#include "common/base/mutex.h"
#include "common/os/env.h"

namespace kernix::cache {

// Thread-safe. Knows nothing of who needs a blob: its owner keeps a Remove() from racing with a Put() of the same
// content.
class BlobStore {
 public:
  // The folder must be there.
  BlobStore(Env& env, std::string directory) : env_(env), directory_(std::move(directory)) {}

  std::string PathOf(const Digest& digest) const;

  // Returns once `content` is at its place and will be there after a crash. A sound file that is there already is kept;
  // one that cannot be read is replaced.
  absl::Status Put(const Digest& digest, std::string_view content);

  // Whether the file is there with the size and the content that it should have. The content is read only when the file
  // changed since it was last read. A file that cannot be looked at (no descriptor left, a failing disk) is an error:
  // it says nothing of the content.
  absl::StatusOr<bool> IsSound(const Digest& digest, uint64_t size);

  // The file, to be read piece by piece, whatever becomes of its name meanwhile. kNotFound when there is none,
  // kDataLoss when it has other content than its name says: like IsSound() it looks only when the file changed.
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const Digest& digest);

  // OK when there is none.
  absl::Status Remove(const Digest& digest);

  // Removes everything in the folder that `keep` does not name. For the start, when nobody else is at work.
  absl::Status RemoveAllBut(const absl::flat_hash_set<Digest>& keep);

 private:
  struct Fingerprint {
    uint64_t size, inode, device;
    int64_t mtime_ns, ctime_ns;
    bool operator==(const Fingerprint&) const = default;
  };

  static Fingerprint FingerprintOf(const FileInfo& info);
  absl::StatusOr<bool> Verify(const Digest& digest, ReadableFile& file);
  void Remember(const Digest& digest, const Fingerprint& fingerprint);
  bool Remembers(const Digest& digest, const Fingerprint& fingerprint);

  Env& env_;
  const std::string directory_;
  Mutex mutex_;
  absl::flat_hash_map<Digest, Fingerprint> verified_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::cache
