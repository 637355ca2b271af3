// SPDX-License-Identifier: Apache-2.0
//
// The parts of a g++ or clang++.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/os/env.h"
#include "daemon/toolchain/file_digests.h"
#include "daemon/toolchain/tool_query.h"
#include "daemon/toolchain/toolchain.h"

namespace kernix::toolchain {

// Queries the compiler at `path`, which `setting` has named, and which runs with `variables`. Adds to `files` every
// file that the answer depends on, in its state before the query. TOOLCHAIN errors as in ToolchainRegistry::Resolve().
absl::StatusOr<HostCompiler> ProbeHostCompiler(Env& env, FileDigests& digests, const std::string& path,
                                               std::string_view setting, const Variables& variables,
                                               std::vector<WatchedFile>& files);

}  // namespace kernix::toolchain
