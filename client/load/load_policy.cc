// SPDX-License-Identifier: Apache-2.0
#include "client/load/load_policy.h"

#include <optional>

#include "absl/strings/str_join.h"
#include "common/base/error.h"
#include "common/base/nearest_name.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace kernix {
namespace {

constexpr char kVariable[] = "KERNIX_POLICY";

absl::StatusOr<LoadPolicy> PolicyOfEnvironment(const GetEnv& get_env) {
  const std::optional<std::string> name = get_env(kVariable);
  if (!name) return LoadPolicy::kBuild;
  return PolicyNamed(*name, StrCat("the environment variable ", kVariable));
}

}  // namespace

const std::vector<std::string> kPolicyNames = {"build", "cached"};

absl::StatusOr<LoadPolicy> PolicyNamed(std::string_view name, std::string_view where) {
  if (name == kPolicyNames[0]) return LoadPolicy::kBuild;
  if (name == kPolicyNames[1]) return LoadPolicy::kCached;
  return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                   StrCat(where, " is \"", name, "\". It takes ", absl::StrJoin(kPolicyNames, " and "), ".",
                          DidYouMean(std::string(name), kPolicyNames)));
}

absl::StatusOr<LoadPolicy> PolicyOf(const LoadOptions& options, const GetEnv& get_env) {
  if (!options.policy) {
    KERNIX_ASSIGN_OR_RETURN(const LoadPolicy policy, PolicyOfEnvironment(get_env));
    if (policy == LoadPolicy::kBuild || !options.force_rebuild) return policy;
    return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                     StrCat("force_rebuild compiles, and ", kVariable, "=cached forbids that: use one of them"));
  }
  if (*options.policy == LoadPolicy::kBuild || !options.force_rebuild) return *options.policy;
  return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                   "force_rebuild compiles, and the policy \"cached\" forbids that: use one of them");
}

}  // namespace kernix
