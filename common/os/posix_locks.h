// SPDX-License-Identifier: Apache-2.0
//
// The file locks of Env::Posix(); see env.h for their contracts.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/os/env.h"

namespace kernix::posix {

absl::StatusOr<std::unique_ptr<FileLock>> TryLockFile(const std::string& path);
absl::StatusOr<std::unique_ptr<FileLock>> LockFile(const std::string& path, MonotonicTime deadline);

}  // namespace kernix::posix
