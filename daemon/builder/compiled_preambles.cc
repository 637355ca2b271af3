// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/compiled_preambles.h"

#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "daemon/builder/dependency_file.h"

namespace kernix::build {
namespace {

constexpr int kMostMisfits = 3;
constexpr char kHeaderDigest[] = "header";  // its name among what the step cache keeps
constexpr char kEffect[] = "the host compiler reads the #includes of these kernels each time";

void Mount(exec::InputTreePtr tree, exec::Action& action) {
  std::vector<exec::MountedTree> trees;
  if (action.trees != nullptr) trees = *action.trees;
  trees.push_back({kCompiledPreambleFolder, /*digest=*/{}, std::move(tree)});  // nobody asks for the action's digest
  action.trees = std::make_shared<const std::vector<exec::MountedTree>>(std::move(trees));
}

}  // namespace

struct CompiledPreambles::Lesson {
  std::shared_ptr<const SplitCompile> split;
  BuildStart start;
  exec::Content object;
  toolchain::ToolchainPtr toolchain;
  UserId user;
};

void CompiledPreambles::Learn(const Lesson& lesson) {
  const Step& preamble = lesson.split->preamble;
  const Digest key = StepCache::KeyOf(preamble, *lesson.toolchain);
  std::vector<std::string> files;
  if (!learning_.MayLearn(key) || Find(preamble, *lesson.toolchain, files) != nullptr) return;
  exec::ActionResult read;
  const absl::StatusOr<exec::Content> header = Compile(lesson, read);
  if (!header.ok()) return learning_.NoteFailure(key, header.status(), kEffect);
  // Compiles the rest, to compare the object with that of the whole compile.
  const auto tree = std::make_shared<exec::InputTree>(CompiledPreambleFiles(*header));
  Step rest = preamble;
  rest.reuse.reset();
  rest.action = lesson.split->rest;
  rest.action.step = preamble.action.step;
  Mount(tree, rest.action);
  const absl::StatusOr<PlanOutputs> made = learning_.RunSteps(lesson.user, {std::move(rest)});
  // The rest of this unit says nothing about other users' units.
  if (!made.ok() || *made->at(lesson.split->rest.outputs.front()) != *lesson.object) {
    return NoteMisfit(key, lesson.user);
  }
  const Digest digest = DigestOf(**header);
  trees_.Keep(digest, tree, (*header)->size());
  read.outputs[kHeaderDigest] = exec::MakeContent(digest.Hex());
  cache_.Keep(key, preamble, *lesson.toolchain, lesson.start, read);
  if (Find(preamble, *lesson.toolchain, files) != nullptr) return;
  trees_.Drop(tree);  // a header may have changed meanwhile
  NoteMisfit(key, lesson.user);
}

absl::StatusOr<exec::Content> CompiledPreambles::Compile(const Lesson& lesson, exec::ActionResult& read) {
  const SplitCompile& split = *lesson.split;
  std::vector<Step> steps = {split.preamble};
  if (split.preprocess != nullptr) steps.push_back(*split.preprocess);
  KERNIX_ASSIGN_OR_RETURN(const PlanOutputs made, learning_.RunSteps(lesson.user, std::move(steps)));
  if (split.preprocess != nullptr && !MayBeCompiled(*made.at(split.preprocess->action.outputs.front()))) {
    return absl::FailedPreconditionError("a directive of theirs may change what follows");
  }
  const std::string& files = split.preamble.reuse->dependencies.front();
  read.outputs[files] = made.at(files);
  const exec::Content& header = made.at(CompiledHeaderOf(split.preamble));
  if (header->size() > kMostBytes) return absl::FailedPreconditionError("the precompiled header is too large");
  return header;
}

CompiledPreambles::Prepared CompiledPreambles::Prepare(std::optional<SplitCompile> split,
                                                       const std::string& dependencies,
                                                       const toolchain::Toolchain& toolchain, UserId user) {
  Prepared prepared{.faster = nullptr, .to_learn = nullptr, .start = cache_.Now()};
  const bool has_headers = toolchain.host.kind == toolchain::HostCompilerKind::kGcc;
  const Digest key = split ? StepCache::KeyOf(split->preamble, toolchain) : Digest();
  const bool is_misfit = misfits_.Find({key, user}).value_or(0) >= kMostMisfits;
  if (is_disabled_ || !has_headers || !split || !learning_.MayLearn(key) || is_misfit) {
    compiles_["none"].Add();
    return prepared;
  }
  FasterAction faster{.action = {}, .dependencies = dependencies, .files = {}};
  if (exec::InputTreePtr tree = Find(split->preamble, toolchain, faster.files); tree != nullptr) {
    compiles_["compiled"].Add();
    faster.action = std::move(split->rest);
    Mount(std::move(tree), faster.action);
    prepared.faster = std::make_shared<const FasterAction>(std::move(faster));
    return prepared;
  }
  compiles_["not_known_yet"].Add();
  if (learning_.WasAskedFor(key)) prepared.to_learn = std::make_shared<const SplitCompile>(*std::move(split));
  return prepared;
}

exec::InputTreePtr CompiledPreambles::Find(const Step& preamble, const toolchain::Toolchain& toolchain,
                                           std::vector<std::string>& files) {
  const std::optional<exec::ActionResult> read = cache_.Find(StepCache::KeyOf(preamble, toolchain), toolchain);
  if (!read) return nullptr;  // or a header has changed
  files = ParseDependencyFile(*read->outputs.at(preamble.reuse->dependencies.front()));
  const absl::StatusOr<Digest> digest = Digest::FromHex(*read->outputs.at(kHeaderDigest));
  return digest.ok() ? trees_.Find(*digest) : nullptr;
}

void CompiledPreambles::Teach(const Prepared& prepared, exec::Content object, toolchain::ToolchainPtr toolchain,
                              UserId user) {
  if (prepared.to_learn == nullptr) return;
  const Digest key = StepCache::KeyOf(prepared.to_learn->preamble, *toolchain);
  const Lesson lesson{prepared.to_learn, prepared.start, std::move(object), toolchain, user};
  if (learning_.Teach(*toolchain, [this, lesson] { Learn(lesson); })) learning_.Forget(key);
}

void CompiledPreambles::NoteMisfit(const Digest& preamble, UserId user) {
  misfits_.Put({preamble, user}, misfits_.Find({preamble, user}).value_or(0) + 1);
}

}  // namespace kernix::build
