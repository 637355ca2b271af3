// SPDX-License-Identifier: Apache-2.0
//
// What steps have made, until their load ends: on the disk, since a load may wait for long, and so may hundreds of
// others.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/base/user_id.h"
#include "common/os/env.h"
#include "daemon/exec/byte_quota.h"
#include "daemon/exec/content.h"

namespace kernix::build {

// For whom outputs are held, and how many.
struct HeldOutputsOptions {
  Env& env;
  std::string scratch_directory;
  uint64_t max_bytes = 0;  // of one HeldOutputs; 0: no limit
  std::shared_ptr<exec::ByteQuota> of_users;
  UserId user;
};

// The outputs of one plan. They count for the user as long as one of them that lies in the same file is needed. Thread-
// safe.
class HeldOutputs {
 public:
  explicit HeldOutputs(HeldOutputsOptions options) : options_(std::move(options)) {}

  // For a plan that is a step of this one, whose outputs may go before.
  std::shared_ptr<HeldOutputs> ForPart() const { return std::make_shared<HeldOutputs>(options_); }

  // The same bytes, on the disk. RESOURCE if they are too many for the plan or for the user, or if the disk is full.
  absl::StatusOr<exec::Content> Hold(const exec::Content& content);

 private:
  class File;

  absl::Status CheckSize(size_t more) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status MakeRoom(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const HeldOutputsOptions options_;
  Mutex mutex_;
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<File> file_ ABSL_GUARDED_BY(mutex_);  // takes what still fits into it; null: none has been made
};

using HeldOutputsPtr = std::shared_ptr<HeldOutputs>;

// `outputs` null: stays in memory.
inline absl::StatusOr<exec::Content> Hold(const HeldOutputsPtr& outputs, exec::Content content) {
  if (outputs == nullptr) return content;
  return outputs->Hold(content);
}

}  // namespace kernix::build
