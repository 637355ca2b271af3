// SPDX-License-Identifier: Apache-2.0
//
// The outputs of steps, until their load ends: on the disk, because hundreds of loads may wait for long.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/os/env.h"
#include "daemon/exec/askers.h"
#include "daemon/exec/blob.h"
#include "daemon/exec/byte_quota.h"

namespace kernix::build {

// Charges one of `askers` who has room: nobody's quota makes a load of somebody else fail.
struct HeldOutputsOptions {
  std::string scratch_directory;
  uint64_t max_bytes = 0;                     // of one plan at a time; 0: no limit
  std::shared_ptr<exec::ByteQuota> of_users;  // of all plans
  exec::AskersPtr askers;
};

// The outputs of one plan. They count against the limits while they are needed, perhaps longer than the object exists.
// Thread-safe.
class HeldOutputs {
 public:
  // `env` must outlive the object.
  HeldOutputs(Env& env, const HeldOutputsOptions& options);
  ~HeldOutputs();

  // For a plan that is a step of this one. It has a limit of its own.
  std::shared_ptr<HeldOutputs> ForPart() const;

  // The same bytes, on the disk. RESOURCE if they are too many for the plan or for its users, or cannot be written; a
  // MakeBusyError() if other loads of the users take the room.
  absl::StatusOr<exec::Content> Hold(const exec::Content& content);

 private:
  class Files;
  struct Held;

  HeldOutputs(HeldOutputsOptions options, std::shared_ptr<Files> files);

  // Null: no asker has room.
  std::unique_ptr<exec::ByteQuota::Share> TakeOfAnAsker(uint64_t bytes) const;

  const HeldOutputsOptions options_;
  const std::shared_ptr<Files> files_;  // of all plans of a load
  const std::shared_ptr<exec::ByteQuota> of_plan_;
};

using HeldOutputsPtr = std::shared_ptr<HeldOutputs>;

// `outputs` null: stays in memory.
inline absl::StatusOr<exec::Content> Hold(const HeldOutputsPtr& outputs, exec::Content content) {
  if (outputs == nullptr) return content;
  return outputs->Hold(content);
}

}  // namespace kernix::build
