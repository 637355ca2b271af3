// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/step_cache.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "common/base/exceptions.h"
#include "common/base/paths.h"
#include "common/os/file_identity.h"
#include "daemon/builder/dependency_file.h"
#include "daemon/exec/action_digest.h"
#include "daemon/language/read/device_code.h"
#include "daemon/plan/tool_paths.h"

namespace kernix::build {
namespace {

bool Counts(const Reuse& reuse, const std::string& input) {
  return reuse.inputs.empty() || std::find(reuse.inputs.begin(), reuse.inputs.end(), input) != reuse.inputs.end();
}

// Whether a tool has read an input that does not count: assembler text of a source can do that.
bool HasReadMore(const Step& step, const std::vector<std::string>& dependencies) {
  std::set<std::string> read;
  for (const std::string& text : dependencies) {
    for (const std::string& path : ParseDependencyFile(text)) read.insert(NormalizePath(path));
  }
  return std::any_of(step.action.inputs.begin(), step.action.inputs.end(), [&](const exec::InputFile& input) {
    return !Counts(*step.reuse, input.path) && read.contains(input.path);
  });
}

bool IsCertain(const std::vector<StatedHeader>& headers) {
  return std::none_of(headers.begin(), headers.end(),
                      [](const StatedHeader& header) { return header.digest == Digest(); });
}

}  // namespace

// The outputs may name the toolchain's folders, which the action's digest does not cover.
Digest StepCache::KeyOf(const Step& step, const toolchain::Toolchain& toolchain) {
  exec::Action action = step.action;
  CanonicalHasher hasher("kernix-step-result");
  std::erase_if(action.inputs, [&](const exec::InputFile& input) {
    if (!Counts(*step.reuse, input.path)) return true;
    if (input.path != step.reuse->device_unit) return false;
    const std::optional<Digest> code = language::DigestOfDeviceCode(*input.content);
    if (code) hasher.Field("device code", *code);
    return code.has_value();
  });
  hasher.Field("action", exec::DigestOfAction(action, {}).hash);
  for (const NamedFolder& folder : ToolchainFolders(toolchain)) hasher.Field("folder", folder.path);
  return hasher.Finish();
}

std::optional<exec::ActionResult> StepCache::Find(const Digest& key, const toolchain::Toolchain& toolchain) {
  std::optional<cache::StepResult> kept = store_.Find(key);
  std::vector<WatchedFile> states;
  if (!kept || ChangedToolchainHeader(digests_, toolchain, kept->headers, states)) return std::nullopt;
  exec::ActionResult result;
  for (auto& [path, content] : kept->outputs) {
    result.outputs[path] = exec::MakeContent(std::move(content));
  }
  return result;
}

void StepCache::Keep(const Digest& key, const Step& step, const toolchain::Toolchain& toolchain,
                     const BuildStart& start, const exec::ActionResult& result) {
  if (result.exit_code != 0 || !result.output.empty()) return;
  // If a tool was replaced meanwhile, the new one may have run, but the key names the old one.
  if (!Unchanged(env_, toolchain.files)) return;
  std::vector<std::string> dependencies;
  for (const std::string& path : step.reuse->dependencies) {
    dependencies.push_back(FollowLinks(*result.outputs.at(path), step.action.links));
  }
  if (HasReadMore(step, dependencies)) return;
  cache::StepResult kept;
  kept.headers = DigestToolchainHeaders(env_, digests_, toolchain, dependencies, start, look_at_).headers;
  if (!IsCertain(kept.headers)) return;
  for (const auto& [path, content] : result.outputs) kept.outputs.emplace_back(path, *content);
  store_.Put(key, kept);
  if (upstream_ == nullptr) return;
  upstream_->Keep(key, kept.headers, {result.outputs.begin(), result.outputs.end()});
}

std::optional<exec::ActionResult> StepCache::FindUpstream(const Digest& key, const Step& step,
                                                          toolchain::ToolchainPtr toolchain, UpstreamBudgetPtr budget,
                                                          CancellationPtr cancellation) {
  if (upstream_ == nullptr) return std::nullopt;
  const std::optional<remote::SharedResult> found = upstream_->Find({.key = key,
                                                                     .toolchain = std::move(toolchain),
                                                                     .room = store_.limit_bytes(),
                                                                     .cancellation = std::move(cancellation),
                                                                     .budget = std::move(budget)});
  absl::StatusOr<exec::ActionResult> taken =
      CatchExceptions("not taken", [&] { return Take(key, step.action.outputs, found); });
  return taken.ok() ? std::optional(*std::move(taken)) : std::nullopt;
}

absl::StatusOr<exec::ActionResult> StepCache::Take(const Digest& key, const std::vector<std::string>& outputs,
                                                   const std::optional<remote::SharedResult>& found) {
  if (!found) return absl::NotFoundError("nobody has it");
  exec::ActionResult result;
  cache::StepResult kept{.outputs = {}, .headers = found->headers};
  for (const auto& [path, content] : found->files) {
    if (std::find(outputs.begin(), outputs.end(), path) == outputs.end()) continue;
    result.outputs[path] = content;
    kept.outputs.emplace_back(path, *content);
  }
  for (const std::string& output : outputs) {
    if (!result.outputs.contains(output)) return absl::DataLossError("an output is missing");
  }
  store_.Put(key, kept);
  return result;
}

void StepCache::Register(MetricsRegistry& registry) const {
  registry.AddGauge("kernix_step_cache_bytes", "Bytes of kept results of steps.",
                    [this] { return static_cast<int64_t>(store_.bytes()); });
}

}  // namespace kernix::build
