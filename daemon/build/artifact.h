// SPDX-License-Identifier: Apache-2.0
//
// From what a plan made to what the cache keeps.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/base/env.h"
#include "daemon/build/plan_runner.h"
#include "daemon/build/request.h"
#include "daemon/cache/cache.h"
#include "daemon/toolchain/file_digests.h"

namespace kernix::build {

// The newest versions of the C and C++ runtime's symbols that an artifact needs. COMPILATION when it is no shared
// object or lacks a handler of `functions`.
absl::StatusOr<std::vector<std::string>> InspectArtifact(std::string_view artifact,
                                                         const std::vector<codegen::FunctionSpec>& functions);

// The toolchain's headers that a build has read, by portable path. One that changed since `build_started_unix_ms` gets
// a digest that nothing has, so that the entry is built again when it is asked for.
std::vector<cache::ToolchainHeader> DigestToolchainHeaders(Env& env, toolchain::FileDigests& digests,
                                                           const toolchain::Toolchain& toolchain,
                                                           std::string_view dependency_file,
                                                           int64_t build_started_unix_ms);

// Whether the headers that `entry` was built with are the ones that `toolchain` has now.
bool ToolchainHeadersUnchanged(toolchain::FileDigests& digests, const toolchain::Toolchain& toolchain,
                               const cache::Entry& entry);

std::vector<v1::ResolvedFunction> ResolvedFunctions(const std::vector<codegen::FunctionSpec>& functions);

}  // namespace kernix::build
