// SPDX-License-Identifier: Apache-2.0
//
// Turns the outputs of a plan into an artifact of the cache.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/builder/plan_runner.h"
#include "daemon/cache/cache.h"
#include "daemon/language/spec/function_spec.h"
#include "daemon/request/request.h"

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
absl::StatusOr<std::string> WithTexts(std::string_view linked, const v1::ArtifactTexts& texts, uint64_t limit);

// The functions as clients see them.
std::vector<v1::ResolvedFunction> ResolvedFunctions(const std::vector<language::FunctionSpec>& functions);

}  // namespace kernix::build
