// SPDX-License-Identifier: Apache-2.0
//
// Turns the outputs of a plan into what the cache stores.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
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

// Returns the newest versions of the C and C++ runtimes' symbols that an artifact needs. COMPILATION if it is not a
// shared object or lacks a handler of `functions`.
absl::StatusOr<std::vector<std::string>> InspectArtifact(std::string_view artifact,
                                                         const std::vector<language::FunctionSpec>& functions);

// The texts of `units` and the outputs that `kept` names.
v1::ArtifactTexts TextsFor(const BuildRequest& request, const std::vector<exec::Content>& units,
                           const std::vector<KeptFile>& kept, const PlanOutputs& outputs);

// `linked` with `texts`. RESOURCE if that has more than `limit` bytes (0: no limit), COMPILATION if it cannot carry
// them.
absl::StatusOr<std::string> WithTexts(const std::string& linked, const v1::ArtifactTexts& texts, uint64_t limit);

// When a build began, by both clocks.
struct BuildStart {
  MonotonicTime monotonic;
  int64_t unix_ms = 0;
};

// The toolchain headers that a build has read, by portable path. A header that may have changed since the build began
// gets a digest that matches no content, and a line in the log: the next load of the entry builds it again. That build
// already knows the header's content, so it records the right digest whatever the file's time stamps say (a file
// server's clock may be ahead of this machine's).
std::vector<cache::ToolchainHeader> DigestToolchainHeaders(Env& env, toolchain::FileDigests& digests,
                                                           const toolchain::Toolchain& toolchain,
                                                           const std::vector<std::string_view>& dependency_files,
                                                           const BuildStart& start);

// A header that `entry` was built with and that `toolchain` does not have any more, or only with other content: its
// path, or its name in the entry if it is nowhere. nullopt: all headers are as they were.
std::optional<std::string> ChangedToolchainHeader(toolchain::FileDigests& digests,
                                                  const toolchain::Toolchain& toolchain, const cache::Entry& entry);

std::vector<cache::Function> ResolvedFunctions(const std::vector<language::FunctionSpec>& functions);

}  // namespace kernix::build
