// SPDX-License-Identifier: Apache-2.0
//
// Contents by their SHA-256.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/digest.h"
#include "common/os/env.h"

namespace kernix::cache {

// Thread-safe. Knows nothing of who needs a blob: its owner keeps a Remove() from racing with a Put() of the same
// content.
class BlobStore {
 public:
  virtual ~BlobStore() = default;

  // Where a process of this host finds the blob, whether or not it is there. Empty: only Open() gets at it.
  virtual std::string PathOf(const Digest& digest) const = 0;

  // Returns once `content` is stored and will be there after a crash. A sound blob that is there already is kept; any
  // other is replaced.
  virtual absl::Status Put(const Digest& digest, std::string_view content) = 0;

  // Whether the blob is there with the size and the content that it should have. A blob that cannot be looked at (no
  // descriptor left, a failing disk) is an error: it says nothing of the content.
  virtual absl::StatusOr<bool> IsSound(const Digest& digest, uint64_t size) = 0;

  // The blob, to be read piece by piece, even when it is removed meanwhile. kNotFound when there is no such blob,
  // kDataLoss when it has other content than its digest says.
  virtual absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const Digest& digest) = 0;

  // OK when there is no such blob.
  virtual absl::Status Remove(const Digest& digest) = 0;

  // Removes everything that is not in `keep`. For the start, when nobody else is at work.
  virtual absl::Status RemoveAllBut(const absl::flat_hash_set<Digest>& keep) = 0;
};

}  // namespace kernix::cache
