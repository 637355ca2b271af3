// SPDX-License-Identifier: Apache-2.0
//
// The asker of a load, as the builder sees it.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "common/base/digest.h"
#include "daemon/plan/plan.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::build {

// Called only from the thread that calls Builder::Load() with it.
class LoadObserver {
 public:
  virtual ~LoadObserver() = default;

  // Fetches exactly these contents from the client; each has its digest. Blocks; must return when the client leaves.
  // Called at most once, before any progress.
  virtual absl::StatusOr<HeaderContents> FetchHeaders(const std::vector<Digest>& digests) = 0;

  virtual void OnProgress(const v1::Progress& /*progress*/) {}

  // For verbose loads only.
  virtual void OnOutput(const v1::Output& /*output*/) {}
};

}  // namespace kernix::build
