// SPDX-License-Identifier: Apache-2.0
#include "daemon/plan/load_key.h"

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/strings.h"
#include "common/wire/artifact_texts.h"
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

  Digest OfOutput(const std::string& path) const { return promises_.at(path).hash; }

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

// The artifact carries the units' texts, which are inputs of the steps, with the labels of their sources.
void AddLabels(CanonicalHasher& hasher, const std::vector<Unit>& units) {
  hasher.Field("form", TextsFormat()).List("units", units.size());
  for (const Unit& unit : units) {
    hasher.List("labels", unit.sources.size());
    for (const language::SourceText& source : unit.sources) hasher.Field("label", source.label);
  }
}

void AddKept(CanonicalHasher& hasher, const std::vector<KeptFile>& kept, const StepDigests& steps) {
  hasher.List("kept", kept.size());
  for (const KeptFile& file : kept) {
    hasher.Field("kind", static_cast<uint64_t>(file.kind))
        .Field("unit", file.unit)
        .Field("architecture", file.architecture);
    hasher.Field("text", steps.OfOutput(file.path));
  }
}

}  // namespace

Digest LoadKey(const BuildRequest& request, const Plan& plan) {
  StepDigests steps;
  Digest last;
  CanonicalHasher hasher("kernix-load");
  for (const Step& step : plan.steps) {
    last = steps.Add(step);
    if (!request.refusal.ok()) hasher.Field("refused", last);  // no step needs all others
  }
  if (!request.refusal.ok()) hasher.Field("refusal", ToStd(request.refusal.message()));
  hasher.Field("step", last);
  AddFunctions(hasher, request.functions);
  AddLabels(hasher, request.units);
  AddKept(hasher, plan.files.kept, steps);
  return hasher.Finish();
}

}  // namespace kernix::build
