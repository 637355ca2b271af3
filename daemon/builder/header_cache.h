// SPDX-License-Identifier: Apache-2.0
//
// The contents of headers that clients have sent recently, to save uploads.
#pragma once

#include <utility>
#include <vector>

#include "common/base/digest.h"
#include "common/base/identity.h"
#include "common/base/lru.h"
#include "daemon/builder/flight.h"

namespace kernix::build {

// By bytes. A content serves only users who have sent it.
using HeaderCache = SharedLru<std::pair<UserId, Digest>, exec::Content>;

// An asker whose client gets requests only for headers that this user has not sent before.
class OwnHeaders : public LoadObserver {
 public:
  // `cache` and `asker`, one of `user`, must outlive it.
  OwnHeaders(HeaderCache& cache, UserId user, LoadObserver& asker) : cache_(cache), user_(user), asker_(asker) {}

  absl::StatusOr<HeaderContents> FetchHeaders(const std::vector<Digest>& digests) override;
  void OnProgress(const v1::Progress& progress) override { asker_.OnProgress(progress); }
  void OnOutput(const v1::Output& output) override { asker_.OnOutput(output); }

 private:
  HeaderCache& cache_;
  const UserId user_;
  LoadObserver& asker_;
};

}  // namespace kernix::build
