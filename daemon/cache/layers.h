// SPDX-License-Identifier: Apache-2.0
//
// Several stores as one: the first is written, the others are only read. An image or a site's folder brings artifacts.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/os/env.h"
#include "daemon/cache/cache.h"

namespace kernix::cache {

// A store that is only read: nothing in it is locked or written, so it may lie on a read-only file system.
struct Layer {
  std::unique_ptr<Index> index;
  std::unique_ptr<BlobFolder> blobs;
};

// `env` must outlive it. Opens the store in `directory`, as it is now: entries that others add to it later do not show.
// Its index is copied to `scratch`, a path without a file, since SQLite writes beside an index that it reads. Errors
// say what to do: the folder is not a store, cannot be read, or others than root and this user may write to it.
absl::StatusOr<Layer> OpenLayer(Env& env, const std::string& directory, const std::string& scratch);

}  // namespace kernix::cache
