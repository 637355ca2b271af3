// SPDX-License-Identifier: Apache-2.0
//
// Assembles the header contents that a client uploads in pieces during a Load call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "common/base/digest.h"
#include "daemon/plan/plan.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::server {

// Not thread-safe.
class BlobReceiver {
 public:
  // Expects the content of each of `digests`, at most `bytes` in all.
  BlobReceiver(const std::vector<Digest>& digests, uint64_t bytes);

  // INVALID_REQUEST for an unrequested blob, for a blob that begins before another is complete, for content that does
  // not match its digest, and for more bytes than announced.
  absl::Status Add(const v1::Blob& blob);

  // Whether all contents have arrived.
  bool complete() const { return expected_.empty(); }

  build::HeaderContents TakeContents() { return std::move(contents_); }

 private:
  absl::Status Append(const Digest& digest, const v1::Blob& blob);
  absl::Status FinishCurrent();

  absl::flat_hash_set<Digest> expected_;
  const uint64_t announced_bytes_;
  uint64_t received_bytes_ = 0;
  Digest current_;
  bool in_blob_ = false;
  std::string content_;  // of `current_`
  build::HeaderContents contents_;
};

}  // namespace kernix::server
