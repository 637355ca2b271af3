// SPDX-License-Identifier: Apache-2.0
//
// From what a plan made to what the cache keeps.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/os/env.h"
#include "daemon/builder/plan_runner.h"
#include "daemon/cache/cache.h"
#include "daemon/language/spec/function_spec.h"
#include "daemon/request/request.h"
#include "daemon/toolchain/file_digests.h"

namespace kernix::build {

// The newest versions of the C and C++ runtime's symbols that an artifact needs. COMPILATION when it is no shared
// object or lacks a handler of `functions`.
absl::StatusOr<std::vector<std::string>> InspectArtifact(std::string_view artifact,
                                                         const std::vector<language::FunctionSpec>& functions);

// When a build began, by both clocks.
struct BuildStart {
  MonotonicTime monotonic;
  int64_t unix_ms = 0;
};

// The toolchain's headers that a build has read, by portable path. One that may have changed since the build began gets
// a digest that nothing has, and a line in the log: the entry is built again when it is asked for. That next build
// knows its content from before, so it settles the matter, whatever the file's time stamps say (a file server's clock
// may be ahead of ours).
std::vector<cache::ToolchainHeader> DigestToolchainHeaders(Env& env, toolchain::FileDigests& digests,
                                                           const toolchain::Toolchain& toolchain,
                                                           const std::vector<std::string_view>& dependency_files,
                                                           const BuildStart& start);

// Whether the headers that `entry` was built with are the ones that `toolchain` has now.
bool ToolchainHeadersUnchanged(toolchain::FileDigests& digests, const toolchain::Toolchain& toolchain,
                               const cache::Entry& entry);

std::vector<cache::Function> ResolvedFunctions(const std::vector<language::FunctionSpec>& functions);

}  // namespace kernix::build
