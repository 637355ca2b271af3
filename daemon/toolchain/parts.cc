// SPDX-License-Identifier: Apache-2.0
#include "daemon/toolchain/parts.h"

#include "common/base/error.h"
#include "common/base/strings.h"

namespace kernix::toolchain {

absl::StatusOr<Digest> Parts::Identity(FileDigests& digests, std::string_view domain,
                                       std::vector<WatchedFile>& watched) const {
  CanonicalHasher hasher(domain);
  hasher.List("parts", parts_.size());
  for (const Part& part : parts_) {
    const absl::StatusOr<Digest> digest = digests.Get(part.path, watched);
    if (!digest.ok()) {
      return MakeError(v1::ErrorDetail::TOOLCHAIN,
                       StrCat("cannot read a part of the toolchain: ", digest.status().message()));
    }
    hasher.Field("role", part.role).Field("content", *digest);
  }
  return hasher.Finish();
}

}  // namespace kernix::toolchain
