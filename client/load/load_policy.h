// SPDX-License-Identifier: Apache-2.0
//
// Whether a load may compile: its own option, else $KERNIX_POLICY.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/paths.h"
#include "kernix/load.h"

namespace kernix {

// What users write: "build", "cached".
extern const std::vector<std::string> kPolicyNames;

// The policy of this name. INVALID_REQUEST lists the names; `where` says who gave it: "policy".
absl::StatusOr<LoadPolicy> PolicyNamed(std::string_view name, std::string_view where);

// The policy of a load with these options. INVALID_REQUEST if the variable has no such value, or if the load must not
// compile and must compile.
absl::StatusOr<LoadPolicy> PolicyOf(const LoadOptions& options, const GetEnv& get_env);

}  // namespace kernix
