// SPDX-License-Identifier: Apache-2.0
//
// What a g++ or clang++ is.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/os/env.h"
#include "daemon/toolchain/file_digests.h"
#include "daemon/toolchain/toolchain.h"

namespace kernix::toolchain {

// Asks the compiler at `path`. `files` receives every file that the answer depends on, as it was
// before. TOOLCHAIN errors as
// ToolchainRegistry::Resolve() has them.
absl::StatusOr<HostCompiler> ProbeHostCompiler(Env& env, FileDigests& digests, const std::string& path,
                                               std::vector<WatchedFile>& files);

}  // namespace kernix::toolchain
