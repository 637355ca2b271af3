// SPDX-License-Identifier: Apache-2.0
#include "daemon/plan/load_key.h"

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "daemon/exec/action_digest.h"

namespace kernix::build {
namespace {

// A placeholder for an output that is not made yet.
exec::BlobDigest PromiseOf(const Digest& step, const std::string& output, const Printed& printed) {
  CanonicalHasher hasher("kernix-output");
  hasher.Field("step", step).Field("output", output);
  if (output == printed.path) hasher.Field("without", printed.without);
  return {hasher.Finish(), 0};
}

// The steps' digests. Steps must be added in the order of the plan.
class StepDigests {
 public:
  Digest Add(const Step& step) {
    std::vector<exec::InputFile> made;
    for (const std::string& path : step.inputs_from_steps) made.push_back({path, promises_.at(path)});
    const Digest digest = exec::DigestOfAction(step.action, made).hash;
    for (const std::string& output : step.action.outputs) promises_[output] = PromiseOf(digest, output, step.printed);
    if (!step.printed.path.empty()) promises_[step.printed.path] = PromiseOf(digest, step.printed.path, step.printed);
    return digest;
  }

 private:
  absl::flat_hash_map<std::string, exec::BlobDigest> promises_;
};

void AddFunctions(CanonicalHasher& hasher, const std::vector<language::FunctionSpec>& functions) {
  hasher.List("functions", functions.size());
  for (const language::FunctionSpec& function : functions) {
    const std::vector<std::string> tokens = function.Tokens();
    hasher.Field("name", function.name).List("tokens", tokens.size());
    for (const std::string& token : tokens) hasher.Field("token", token);
  }
}

}  // namespace

Digest LoadKey(const BuildRequest& request, const Plan& plan) {
  StepDigests steps;
  Digest last;
  for (const Step& step : plan.steps) last = steps.Add(step);
  CanonicalHasher hasher("kernix-load");
  hasher.Field("step", last);
  AddFunctions(hasher, request.functions);
  return hasher.Finish();
}

}  // namespace kernix::build
