// SPDX-License-Identifier: Apache-2.0
//
// Env::Posix()'s ScratchFile: a file that is written through its descriptor and read through a mapping.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/os/env.h"

namespace kernix::posix {

absl::StatusOr<std::unique_ptr<ScratchFile>> MakeScratchFile(const std::string& folder, uint64_t capacity);

}  // namespace kernix::posix
