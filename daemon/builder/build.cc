// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/build.h"

#include <chrono>
#include <string_view>
#include <utility>

#include "common/base/error.h"
#include "common/base/exceptions.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/file_identity.h"
#include "daemon/builder/artifact.h"
#include "daemon/builder/failure.h"
#include "daemon/builder/miss_reason.h"
#include "daemon/builder/toolchain_headers.h"
#include "daemon/builder/trace_recorder.h"
#include "daemon/builder/upstream_cache.h"
#include "daemon/language/read/resolve.h"
#include "daemon/language/spec/source_text.h"
#include "daemon/language/write/handler.h"
#include "daemon/language/write/translation_unit.h"
#include "daemon/plan/plan.h"
#include "daemon/plan/tool_paths.h"
#include "daemon/toolchain/description.h"

namespace kernix::build {
namespace {

// The name of the one file that nodes share of a load.
constexpr char kArtifactFile[] = "artifact";

// INVALID_REQUEST if the headers take more than `limit` bytes as files and folders. One content may be staged under
// several names.
absl::Status CheckStagedBytes(const std::vector<HeaderRef>& headers, const HeaderContents& contents, uint64_t limit) {
  uint64_t bytes = CountFolders(headers) * kBlockBytes;
  for (const HeaderRef& header : headers) bytes += contents.at(header.digest)->size();
  if (bytes <= limit) return absl::OkStatus();
  return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                   StrCat("the headers of this load take ", bytes, " bytes as files and folders; at most ", limit,
                          " are allowed: narrow the include paths"));
}

// Adds the content of the flag files that are staged. Outdated() if one has changed.
absl::Status ReadFlagFiles(Env& env, const std::vector<toolchain::FlagFile>& files, HeaderContents& contents) {
  for (const toolchain::FlagFile& file : files) {
    if (file.staged.empty()) continue;
    absl::StatusOr<std::string> content = env.ReadFile(file.path);
    if (!content.ok() || DigestOf(*content) != file.digest) return Outdated(file.path);
    contents[file.digest] = exec::MakeContent(*std::move(content));
  }
  return absl::OkStatus();
}

// Checks after a build that the tools and the files that flags name are those that its key was made from. Outdated() if
// not.
absl::Status CheckNothingChanged(Env& env, toolchain::FileDigests& digests, const BuildRequest& request,
                                 const BuildStart& start) {
  if (const WatchedFile* changed = FirstChanged(env, request.toolchain->files)) {
    return Outdated(StrCat(changed->path, ", a file of the toolchain of ", request.toolchain->host.path, ","));
  }
  for (const toolchain::FlagFile& file : request.flag_files) {
    if (toolchain::IsDescribed(*request.toolchain, file.path)) continue;  // it is on workers
    const auto content = digests.GetContent(file.path);
    if (!content.ok() || content->digest != file.digest) return Outdated(file.path);
    // The file may have changed and changed back during the build. Staged content always matches the key.
    if (file.staged.empty() && content->since > start.monotonic) return Outdated(file.path);
  }
  return absl::OkStatus();
}

// The lists of files that the tools have read, by paths that are also valid outside the input root.
std::vector<std::string> DependenciesOf(const PlanOutputs& made, const PlanFiles& files) {
  std::vector<std::string> texts;
  for (const std::string& path : files.dependencies) texts.push_back(FollowLinks(*made.at(path), files.links));
  return texts;
}

template <typename From, typename To>
void Set(const From& from, To& to) {
  to = {from.begin(), from.end()};
}

// Without its toolchain headers.
cache::Entry NewEntry(const PlannedLoad& load, std::string_view artifact,
                      const std::vector<std::string>& symbol_versions) {
  cache::Entry entry;
  entry.key = load.key;
  entry.artifact = DigestOf(artifact);
  entry.size = artifact.size();
  entry.inputs = InputsOf(load.request);
  entry.detail.set_language(load.request.language);
  Set(load.request.architectures, *entry.detail.mutable_architecture());
  Set(ResolvedFunctions(load.request.functions), *entry.detail.mutable_function());
  Set(symbol_versions, *entry.detail.mutable_required_symbol_version());
  Set(DescribeBuild(load.request), *entry.detail.mutable_build_option());
  entry.detail.set_toolchain(toolchain::DescribeTools(*load.request.toolchain));
  return entry;
}

// Whether a compiler points to what comes after the sources: often, they have not closed something.
bool IsAfterSources(const absl::Status& status) {
  const std::string_view message = ToStd(status.message());
  const auto has = [&](std::string_view text) { return message.find(text) != std::string_view::npos; };
  return KindOf(status) == v1::ErrorDetail::COMPILATION &&
         (has(language::kHandlerOf) || has("<kernix>") || has(language::kHandlersHeader) ||
          has("unterminated argument"));
}

// Adds to an error of nvcc's front end where what it misses may belong.
absl::Status WithOpenBrace(const absl::Status& error, const BuildRequest& request) {
  if (ToStd(error.message()).find("At end of source: error") == std::string_view::npos) return error;
  for (const Unit& unit : request.units) {
    const std::string place = language::FindOpenBrace(unit.sources);
    if (place.empty()) continue;
    v1::ErrorDetail detail = GetErrorDetail(error);
    detail.set_message(StrCat(detail.message(), ": nothing closes the '{' at ", place));
    return MakeError(std::move(detail));
  }
  return error;
}

// Whether a compiler points to a line of kernix: that says less than what kernix itself says.
bool IsInOurHeaders(const absl::Status& status) {
  return KindOf(status) == v1::ErrorDetail::COMPILATION &&
         ToStd(status.message()).find(StrCat(kKernelHeaders, "/brainevent/")) != std::string_view::npos;
}

// Batches count as begun a day later.
constexpr std::chrono::microseconds kBatchDelay = std::chrono::hours(24);

// Nobody waits for one load of a batch. Its host compiles wait until the device code of all loads is under way, so that
// the longest chain of steps, which nobody knows yet, begins sooner.
constexpr std::chrono::microseconds kHostDelay = std::chrono::minutes(1);

// The rest of a user's earlier builds goes first: it ends sooner, and holds what its steps have made for less long.
void RankSteps(MonotonicTime start, std::vector<Step>& steps) {
  const auto since_boot = std::chrono::duration_cast<std::chrono::microseconds>(start.time_since_epoch());
  for (Step& step : steps) {
    step.action.rank = since_boot.count();
    step.action.batch_rank = (since_boot + kBatchDelay).count();
    if (step.nvcc) step.nvcc->host_batch_rank = (since_boot + kBatchDelay + kHostDelay).count();
  }
}

// The error for users after a failure of a plan.
absl::Status FailureOf(const PlanEnd& end) {
  const bool said_no = end.failed != nullptr && KindOf(end.status) == v1::ErrorDetail::COMPILATION;
  return said_no ? WithFailedCommand(end.status, end.failed->action) : end.status;
}

}  // namespace

void Build::Run(HeaderContents contents) {
  End(CatchExceptions(kLoadNotHandled, [&] { return Make(std::move(contents)); }));
}

absl::StatusOr<v1::LoadResult> Build::Make(HeaderContents contents) {
  PlannedLoad& load = *load_;
  // Another build of this key may have ended between our lookup and the start of this flight.
  if (std::optional<v1::LoadResult> hit = parts_.FindAndCount(load)) return *std::move(hit);
  parts_.cache.Count(cache::Total::kMisses);
  if (flight_->fetches()) load.trace->Lap("receive headers");
  load.started = {parts_.env.Now(), parts_.env.UnixMillis()};
  load.headers = std::move(contents);
  if (const std::optional<remote::SharedResult> found = AskUpstream()) {
    absl::StatusOr<v1::LoadResult> result = KeepFromUpstream(*found);
    if (result.ok()) return result;
    // If the result is wrong or cannot be kept, the load does not fail: it builds.
    Log(LogLevel::kWarning, "upstream_result_not_kept",
        {{"name", load.tag.name}, {"key", ShortKey(load.key)}, {"error", ToStd(result.status().message())}});
  }
  if (load.effort != Effort::kBuild) return NothingThere();
  // Users of one store get the same bytes for a request, whoever has loaded it, and how. Nobody else compares the
  // tools' own calls with kernixd's.
  if (load.force && load.plan.mode == CompileMode::kFast) {
    load.plan.mode = parts_.shared() ? CompileMode::kAnew : CompileMode::kWhole;
  }
  flight_->SetStepsTotal(static_cast<int>(load.plan.steps.size()));
  KERNIX_ASSIGN_OR_RETURN(const PlanEnd end, RunSteps(load));
  return Conclude(end);
}

std::optional<remote::SharedResult> Build::AskUpstream() {
  PlannedLoad& load = *load_;
  UpstreamCache* const upstream = parts_.upstream;
  if (upstream == nullptr || load.force || !load.request.refusal.ok()) return std::nullopt;
  load.budget = upstream->NewBudget();
  std::optional<remote::SharedResult> found =
      upstream->Find({.key = load.key,
                      .toolchain = load.request.toolchain,
                      .room = parts_.cache.limit_bytes(),
                      .cancellation = flight_->build_cancellation(),
                      .effort = load.effort,  // one that only waits does not say to other nodes that it builds
                      .budget = load.budget});
  load.trace->Lap("ask upstream");
  return found;
}

absl::StatusOr<v1::LoadResult> Build::KeepFromUpstream(const remote::SharedResult& found) {
  if (found.files.size() != 1) return absl::DataLossError("it is not an artifact");
  const std::string_view artifact = *found.files.front().second;
  KERNIX_ASSIGN_OR_RETURN(const std::vector<std::string> versions, InspectArtifact(artifact, load_->request.functions));
  cache::Entry entry = NewEntry(*load_, artifact, versions);
  entry.detail.set_origin(parts_.upstream->address());
  entry.toolchain_headers = found.headers;
  KERNIX_RETURN_IF_ERROR(parts_.cache.Insert(entry, load_->tag, artifact));
  v1::LoadResult result = parts_.ResultOf(*load_, entry);
  result.set_cache_hit(true);
  result.set_from_upstream(true);
  return result;
}

absl::StatusOr<PlanEnd> Build::RunSteps(PlannedLoad& load) {
  KERNIX_RETURN_IF_ERROR(Stage(load));
  load.trace->Lap("stage");
  RankSteps(load.started.monotonic, load.plan.steps);
  const HeldOutputsOptions held{.scratch_directory = parts_.cache.scratch_directory(),
                                .max_bytes = parts_.options.max_made_bytes,
                                .of_users = parts_.held_bytes,
                                .askers = flight_->askers()};
  PlanEnd end =
      RunPlan({.steps = std::move(load.plan.steps), .toolchain = load.request.toolchain, .mode = load.plan.mode},
              [this](const Step& step, const StepRun& run) { return parts_.step_runner.RunStep(step, run); },
              {.askers = flight_->askers(),
               .budget = load.budget,
               .outputs = std::make_shared<HeldOutputs>(parts_.env, held),
               .observer = flight_.get(),
               .trace = load.trace.get(),
               .cancellation = flight_->build_cancellation()});
  parts_.header_trees.DropUnstaged(*load.plan.trees);
  return end;
}

absl::Status Build::Stage(PlannedLoad& load) {
  HeaderContents contents = load.headers;
  KERNIX_RETURN_IF_ERROR(
      CheckStagedBytes(load.request.headers, contents, parts_.options.limits.max_staged_header_bytes));
  KERNIX_RETURN_IF_ERROR(ReadFlagFiles(parts_.env, load.request.flag_files, contents));
  KERNIX_RETURN_IF_ERROR(StagePlan(load.request, std::move(contents), parts_.header_trees, load.plan));
  if (!parts_.shared() && !parts_.options.disabled.contains(Shortcut::kHostBodies)) return absl::OkStatus();
  for (Step& step : load.plan.steps) {
    if (step.nvcc) step.nvcc->host_bodies_count = true;
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::LoadResult> Build::Conclude(const PlanEnd& end) {
  const absl::Status& refusal = load_->request.refusal;
  if (!refusal.ok() && (end.status.ok() || IsInOurHeaders(end.status))) return refusal;
  if (end.status.ok()) return Keep(end);
  if (refusal.ok() && IsAfterSources(end.status)) {
    if (const std::optional<absl::Status> better = AskAboutSources(end.status)) return *better;
  }
  return FailureOf(end);
}

std::optional<absl::Status> Build::AskAboutSources(const absl::Status& otherwise) {
  PlannedLoad alone = *load_;
  alone.request.refusal = otherwise;
  const absl::StatusOr<PlanEnd> end = CatchExceptions(kLoadNotHandled, [&]() -> absl::StatusOr<PlanEnd> {
    KERNIX_ASSIGN_OR_RETURN(alone.plan, MakePlan(alone.request, parts_.plan_limits()));
    alone.plan.mode = load_->plan.mode;
    return RunSteps(alone);
  });
  if (!end.ok() || end->status.ok() || KindOf(end->status) != v1::ErrorDetail::COMPILATION) return std::nullopt;
  return FailureOf(*end);
}

absl::StatusOr<v1::LoadResult> Build::Keep(const PlanEnd& end) {
  load_->trace->Skip();
  const std::vector<std::string> dependencies = DependenciesOf(end.outputs, load_->plan.files);
  KERNIX_RETURN_IF_ERROR(CheckIsDescribed(*load_->request.toolchain, dependencies));
  const std::string_view linked = *end.outputs.at(load_->plan.files.artifact);
  KERNIX_ASSIGN_OR_RETURN(const std::vector<std::string> versions, InspectArtifact(linked, load_->request.functions));
  v1::ArtifactTexts texts = TextsFor(load_->request, load_->plan.unit_texts, load_->plan.files.kept, end.outputs);
  texts.set_compiler_output(end.printed);
  KERNIX_ASSIGN_OR_RETURN(const std::string artifact, WithTexts(linked, texts, parts_.options.max_made_bytes));
  load_->trace->Lap("check artifact");
  return Store(dependencies, artifact, versions);
}

absl::StatusOr<v1::LoadResult> Build::Store(const std::vector<std::string>& dependency_files,
                                            const std::string& artifact,
                                            const std::vector<std::string>& symbol_versions) {
  cache::Entry entry = NewEntry(*load_, artifact, symbol_versions);
  HeadersRead headers = DigestToolchainHeaders(parts_.env, parts_.toolchains.digests(), *load_->request.toolchain,
                                               dependency_files, load_->started, parts_.look_at());
  entry.toolchain_headers = std::move(headers.headers);
  KERNIX_RETURN_IF_ERROR(CheckNothingChanged(parts_.env, parts_.toolchains.digests(), load_->request, load_->started));
  load_->trace->Lap("digest headers");
  const uint64_t changes_before = parts_.cache.changes(load_->key);
  KERNIX_RETURN_IF_ERROR(parts_.cache.Insert(entry, load_->tag, artifact, [this] {
    load_->trace->Lap("keep artifact");
    return load_->trace->Trace();
  }));
  parts_.toolchains.Remember(*load_->request.toolchain);
  if (parts_.upstream != nullptr && parts_.upstream->writes()) {
    parts_.upstream->Keep(load_->key, entry.toolchain_headers, {{kArtifactFile, exec::MakeContent(artifact)}});
  }
  if (headers.states) Remember(entry, *std::move(headers.states), changes_before + 1);
  v1::LoadResult result = parts_.ResultOf(*load_, entry);
  const auto wall = std::chrono::duration_cast<std::chrono::milliseconds>(parts_.env.Now() - load_->started.monotonic);
  result.set_build_ms(static_cast<uint64_t>(wall.count()));
  return result;
}

// If the entry has changed meanwhile, a lookup finds out whether it is still there.
void Build::Remember(const cache::Entry& entry, std::vector<WatchedFile> headers, uint64_t cache_changes) {
  if (!load_->request_digest || parts_.cache.changes(load_->key) != cache_changes) return;
  KnownHit hit{.key = load_->key,
               .toolchain = load_->request.toolchain,
               .result = parts_.ResultOf(*load_, entry),
               .artifact = entry.artifact,
               .headers = std::make_shared<const std::vector<WatchedFile>>(std::move(headers)),
               .cache_changes = cache_changes};
  hit.result.set_cache_hit(true);
  parts_.known_loads.Add(*load_->request_digest, load_->tag.owner, std::move(hit));
}

namespace {

absl::Status WithKey(const absl::Status& status, const Digest& key) {
  v1::ErrorDetail detail = GetErrorDetail(status);
  detail.set_key(key.Raw());
  return MakeError(std::move(detail));
}

}  // namespace

void Build::End(absl::StatusOr<v1::LoadResult> result) {
  // Whatever happens, the flight ends: everybody who asks for its key waits for it.
  IgnoreExceptions(kLoadNotHandled, [&] {
    if (result.ok()) return;
    result = WithKey(WithOpenBrace(result.status(), load_->request), load_->key);
    if (load_->effort == Effort::kBuild) NoteFailure(result.status());
  });
  // In this order: a load that no longer finds the flight must find the entry.
  parts_.flights.Forget(flight_);
  flight_->Complete(std::move(result));
}

void Build::NoteFailure(const absl::Status& status) {
  CountFailure(status);
  const bool compiler_refuses = KindOf(status) == v1::ErrorDetail::COMPILATION;
  const auto state = compiler_refuses ? remote::ClaimState::kFailed : remote::ClaimState::kLeft;
  if (parts_.upstream != nullptr) parts_.upstream->EndBuild(load_->key, state);
}

void Build::CountFailure(const absl::Status& status) {
  const bool cancelled = KindOf(status) == v1::ErrorDetail::CANCELLED;
  parts_.cache.Count(cancelled ? cache::Total::kCancelled : cache::Total::kFailures);
  const std::string user = StrCat(ToNumber(load_->tag.owner));
  LogOf(user, LogLevel::kInfo, cancelled ? "build_cancelled" : "build_failed",
        {{"name", load_->tag.name}, {"key", ShortKey(load_->key)}, {"error", ToStd(status.message())}});
}

}  // namespace kernix::build
