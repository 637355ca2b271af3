// SPDX-License-Identifier: Apache-2.0
//
// An asker who is asked only for headers that this user has not sent before.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "common/base/user_id.h"
#include "daemon/builder/header_cache.h"
#include "daemon/builder/load_observer.h"

namespace kernix::build {

class OwnHeaders : public LoadObserver {
 public:
  // `cache` and `asker`, one of `user`, must outlive it.
  OwnHeaders(HeaderCache& cache, UserId user, LoadObserver& asker) : cache_(cache), user_(user), asker_(asker) {}

  // INVALID_REQUEST if the asker does not send what it is asked for.
  absl::StatusOr<HeaderContents> FetchHeaders(const std::vector<Digest>& digests) override;
  void OnProgress(const v1::Progress& progress) override { asker_.OnProgress(progress); }
  void OnOutput(const v1::Output& output) override { asker_.OnOutput(output); }

 private:
  HeaderCache& cache_;
  const UserId user_;
  LoadObserver& asker_;
};

}  // namespace kernix::build
