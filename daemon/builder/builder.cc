// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/builder.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/base/exceptions.h"
#include "common/base/log.h"
#include "common/base/module_name.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "daemon/builder/artifact.h"
#include "daemon/builder/build_description.h"
#include "daemon/builder/build_inputs.h"
#include "daemon/builder/build_rank.h"
#include "daemon/builder/failed_command.h"
#include "daemon/builder/files_read.h"
#include "daemon/builder/flights.h"
#include "daemon/builder/header_cache.h"
#include "daemon/builder/key_files.h"
#include "daemon/builder/known_loads.h"
#include "daemon/builder/load_errors.h"
#include "daemon/builder/miss_reason.h"
#include "daemon/builder/own_headers.h"
#include "daemon/builder/plan_runner.h"
#include "daemon/builder/planned_load.h"
#include "daemon/builder/resolved_function.h"
#include "daemon/builder/shared_output.h"
#include "daemon/builder/step_cache.h"
#include "daemon/builder/step_runner.h"
#include "daemon/builder/toolchain_headers.h"
#include "daemon/builder/trace_recorder.h"
#include "daemon/builder/upstream_cache.h"
#include "daemon/language/read/reading.h"
#include "daemon/language/spec/source_text.h"
#include "daemon/language/write/handler.h"
#include "daemon/language/write/translation_unit.h"
#include "daemon/plan/load_key.h"
#include "daemon/plan/plan.h"
#include "daemon/plan/tool_places.h"
#include "daemon/request/load_warnings.h"
#include "daemon/toolchain/description.h"

namespace kernix::build {
namespace {

// A lookup has nobody to tell.
class NoObserver : public LoadObserver {
 public:
  absl::StatusOr<HeaderContents> FetchHeaders(const std::vector<Digest>&) override {
    return absl::UnimplementedError("a lookup uploads nothing");
  }
  void OnProgress(const v1::Progress&) override {}
  void OnOutput(const v1::Output&) override {}
};

// Enough for the headers that a medium-sized project includes repeatedly.
constexpr uint64_t kHeaderCacheBytes = 32 << 20;

// On disk: some large trees.
constexpr uint64_t kHeaderTreeBytes = 256 << 20;

// On disk: the steps of a few hundred kernels.
constexpr uint64_t kStepCacheBytes = 256 << 20;

// Each takes a few hundred bytes, and KnownLoads::kMostWarningBytes at most.
constexpr size_t kKnownLoads = 4096;

// Loads of one user. It takes milliseconds, but up to a hundred megabytes for a hostile request.
constexpr uint64_t kPlannedAtOnce = 4;
// Longer than any user's loads can take to plan.
constexpr std::chrono::hours kTurnComes{24};

// The name of the one file that nodes share of a load.
constexpr char kArtifactFile[] = "artifact";

// What the answer to a request does not depend on.
void ForgetAsker(v1::LoadRequest& request) {
  request.clear_name();
  request.clear_batch();
  request.clear_only_cached();
}

// The files that the compiler has read, by paths that are also valid outside the input root.
std::vector<std::string> DependenciesOf(const PlanOutputs& made, const PlanFiles& files) {
  std::vector<std::string> texts;
  for (const std::string& path : files.dependencies) texts.push_back(FollowLinks(*made.at(path), files.links));
  return texts;
}

std::vector<std::string_view> TextsOf(const PlanOutputs& made, const std::vector<std::string>& paths) {
  std::vector<std::string_view> texts;
  for (const std::string& path : paths) texts.push_back(*made.at(path));
  return texts;
}

v1::Output AnnounceBuild(const std::string& name, const std::string& reason) {
  v1::Output output;
  output.set_text(StrCat("kernixd: building ", name, ": ", reason, "\n"));
  return output;
}

cache::Language LanguageOf(const BuildRequest& request) {
  return request.language == v1::LANGUAGE_CUDA ? cache::Language::kCuda : cache::Language::kCpp;
}

// Without its toolchain headers.
cache::Entry NewEntry(const PlannedLoad& load, std::string_view artifact, std::vector<std::string> symbol_versions) {
  cache::Entry entry;
  entry.required_symbol_versions = std::move(symbol_versions);
  entry.key = load.key();
  entry.artifact = DigestOf(artifact);
  entry.size = artifact.size();
  entry.language = LanguageOf(load.request);
  entry.architectures = load.request.architectures;
  entry.functions = ResolvedFunctions(load.request.functions);
  entry.build_options = DescribeBuild(load.request);
  entry.toolchain = toolchain::DescribeTools(*load.request.toolchain);
  entry.inputs = InputsOf(load.request);
  return entry;
}

// Whether a compiler points to what comes after the sources: often, they have not closed something.
bool IsAfterSources(const absl::Status& status) {
  const std::string_view message = ToStd(status.message());
  const auto has = [&](std::string_view text) { return message.find(text) != std::string_view::npos; };
  return KindOf(status) == v1::ErrorDetail::COMPILATION &&
         (has(language::kHandlerOf) || has("<kernix>") || has(language::kHandlersHeader) || has("unterminated"));
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

exec::Asker AskerOf(const PlannedLoad& load) { return {load.tag.owner, load.batch, load.max_parallel}; }

// Gives a build this asker's place while the load waits.
class Asking {
 public:
  // `runner` and `askers` must outlive it.
  Asking(StepRunner& runner, exec::Askers& askers, const exec::Asker& asker)
      : runner_(runner), askers_(askers), asker_(asker) {
    if (askers_.Join(asker_)) runner_.AskersChanged(askers_);
  }
  ~Asking() {
    if (askers_.Leave(asker_)) runner_.AskersChanged(askers_);
  }
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;

 private:
  StepRunner& runner_;
  exec::Askers& askers_;
  const exec::Asker asker_;
};

// Forwards events to a flight, and times to a trace. Forwards compiler output only if users may see it as it arrives.
class BuildObserver : public PlanObserver {
 public:
  BuildObserver(Flight& flight, std::shared_ptr<TraceRecorder> trace, bool shows_output)
      : flight_(flight), trace_(std::move(trace)), shows_output_(shows_output) {}

  void OnQueued(const std::string& step, int actions_ahead) override { flight_.OnQueued(step, actions_ahead); }
  void OnStarted(const exec::Action& action) override { flight_.OnStarted(action); }
  void OnOutput(std::string_view text) override {
    if (shows_output_) flight_.OnOutput(text);
  }
  void OnStepDone(int steps_done) override { flight_.OnStepDone(steps_done); }
  void OnStepEnded(const StepTimes& times) override { trace_->Add(times); }

 private:
  Flight& flight_;
  const std::shared_ptr<TraceRecorder> trace_;
  const bool shows_output_;
};

}  // namespace

struct Builder::Impl {
  Impl(Env& e, BuilderOptions o, toolchain::ToolchainRegistry& t, exec::Executor& x, cache::Cache& c,
       exec::Executor* background, UpstreamCache* u)
      : env(e),
        options(std::move(o)),
        toolchains(t),
        executor(x),
        cache(c),
        upstream(u),
        lessons(background != nullptr ? std::make_unique<StepRunner>(env, *background, step_cache) : nullptr) {}

  absl::StatusOr<v1::LoadResult> Load(v1::LoadRequest request, UserId owner, LoadObserver& observer,
                                      const CancellationPtr& cancellation);
  // Waits until few enough of the user's loads are being planned.
  std::unique_ptr<exec::ByteQuota::Share> TurnToPlan(UserId user) {
    Cancellation never;  // what is in the cache is given to a load that is cancelled, too
    return planning.Await(user, 1, env.Now() + kTurnComes, never);
  }
  absl::StatusOr<std::shared_ptr<PlannedLoad>> Prepare(const v1::LoadRequest& request, UserId owner,
                                                       toolchain::ToolchainPtr toolchain);

  // What a lookup knows of the load that it asks for.
  struct Asked {
    KnownLoadPtr known;                    // null if the load is not valid
    std::optional<Digest> request;         // if it should be remembered, should it be a hit
    std::shared_ptr<PlannedLoad> planned;  // null if it has been planned before
  };
  // `request`: without its name.
  Asked Know(v1::LoadRequest request, const cache::Tag& tag);
  bool LookUp(v1::LoadRequest request, UserId owner, const DeliverHit& deliver, const CancellationPtr& cancellation);
  bool LookUpThere(const std::shared_ptr<PlannedLoad>& load, const DeliverHit& deliver,
                   const CancellationPtr& cancellation);
  bool LookUpKnown(v1::LoadRequest& request, UserId owner, FileLook& look, const DeliverHit& deliver);
  std::optional<KnownHit> Find(const KnownLoad& load, UserId owner);
  std::optional<v1::LoadResult> FindAndCount(const PlannedLoad& load);
  v1::LoadResult ResultOf(const KnownLoad& load, const cache::Entry& entry) const;

  // What lookups of the same key that look in the upstream now find there. NOT_CACHED: nothing, or there are none.
  absl::StatusOr<v1::LoadResult> JoinLookups(const PlannedLoad& load, LoadObserver& observer,
                                             const CancellationPtr& cancellation);
  void CountJoined();
  // Lends the artifact to the load's user, and notes the tag.
  absl::Status GiveOut(const PlannedLoad& load, const v1::LoadResult& result);
  absl::StatusOr<v1::LoadResult> Fly(const std::shared_ptr<PlannedLoad>& load, const FlightPtr& flight,
                                     LoadObserver& observer, bool verbose, const CancellationPtr& cancellation);

  // From here on, the load's plan and what is set when a build starts are the build's. The asker reads the rest.
  void StartBuild(const std::shared_ptr<PlannedLoad>& load, const FlightPtr& flight, HeaderContents contents);
  // If it fails, the caller calls Finish(); otherwise Finish() is called when the build ends.
  absl::Status TryToStart(const std::shared_ptr<PlannedLoad>& load, const FlightPtr& flight, HeaderContents contents);
  // Takes what another node has built. Returns whether that ended the flight.
  bool TakeFromUpstream(const PlannedLoad& load, const FlightPtr& flight, const remote::SharedResult& found);
  absl::StatusOr<v1::LoadResult> KeepFromUpstream(const PlannedLoad& load, const remote::SharedResult& found);
  void Share(const PlannedLoad& load, const cache::Entry& entry, const std::string& artifact);
  // If it fails, the caller calls Finish(); otherwise Finish() is called when the build ends.
  absl::Status RunBuild(const std::shared_ptr<PlannedLoad>& load, const FlightPtr& flight);
  // Stages and runs the load's plan. `done` gets the names of its files, and its end.
  absl::Status RunSteps(const std::shared_ptr<PlannedLoad>& load, const FlightPtr& flight,
                        std::function<void(const PlanFiles& files, PlanEnd end)> done);
  absl::Status StageBuild(PlannedLoad& load);
  PlanLimits LimitsFor(size_t max_parallel) const;
  void Finish(const PlannedLoad& load, const FlightPtr& flight, absl::StatusOr<v1::LoadResult> result);
  bool CanBuildWith(const toolchain::Toolchain& tools) const {
    return tools.described == nullptr || options.builds_described;
  }
  bool shared() const { return options.flag_policy == toolchain::FlagPolicy::kShared; }
  void Conclude(const PlannedLoadPtr& load, const FlightPtr& flight, const PlanFiles& files, PlanEnd end);
  // Runs the compiler on the sources of a load without their handlers, and ends the load: with its error, or else with
  // that of `otherwise`. If it fails, the caller does the latter.
  absl::Status AskAboutSources(const PlannedLoadPtr& load, const FlightPtr& flight, const PlanFiles& files,
                               std::shared_ptr<PlanEnd> otherwise);
  // Ends a load by the failure of a plan.
  void Tell(const PlannedLoadPtr& load, const FlightPtr& flight, const PlanFiles& files, PlanEnd end);
  absl::StatusOr<v1::LoadResult> Keep(const PlannedLoad& load, const FlightPtr& flight, const PlanFiles& files,
                                      const PlanEnd& end);
  absl::StatusOr<v1::LoadResult> Store(const PlannedLoad& load, const ToolReads& reads, const std::string& artifact,
                                       std::vector<std::string> symbol_versions);
  // Lets the first lookup of what was built be one that is known.
  void RememberBuilt(const PlannedLoad& load, const cache::Entry& entry, std::vector<WatchedFile> headers,
                     uint64_t cache_changes);
  void CountFailure(const PlannedLoad& load, const absl::Status& status);

  Env& env;
  const BuilderOptions options;
  toolchain::ToolchainRegistry& toolchains;
  exec::Executor& executor;
  cache::Cache& cache;
  UpstreamCache* const upstream;  // null: nothing is shared with other nodes
  StepCache step_cache{env, toolchains.digests(), cache.steps_directory(), kStepCacheBytes, upstream};
  const std::shared_ptr<exec::ByteQuota> held_bytes =
      std::make_shared<exec::ByteQuota>(options.max_held_bytes_per_user);
  const std::unique_ptr<StepRunner> lessons;  // null: nothing is learned
  StepRunner step_runner{env, executor, step_cache, lessons.get()};
  HeaderCache header_cache{kHeaderCacheBytes};
  HeaderTrees header_trees{kHeaderTreeBytes};
  IncludeRootsMemo include_roots;
  exec::ByteQuota planning{kPlannedAtOnce};  // of loads, not bytes
  KnownLoads known_loads{kKnownLoads};
  Flights flights{env, options.linger};
};

absl::StatusOr<std::shared_ptr<PlannedLoad>> Builder::Impl::Prepare(const v1::LoadRequest& request, UserId owner,
                                                                    toolchain::ToolchainPtr toolchain) {
  auto load = std::make_shared<PlannedLoad>();
  KERNIX_ASSIGN_OR_RETURN(load->request,
                          ValidateRequest(env, request, std::move(toolchain), options.flag_policy, options.limits));
  load->tag = {request.name(), owner};
  load->force = request.force_rebuild();
  load->max_parallel = request.max_parallel_jobs();
  load->batch = request.batch();
  const bool can_build = CanBuildWith(*load->request.toolchain);
  if (!can_build && load->force) return NothingToBuildWith(*load->request.toolchain);
  if (request.only_cached() || !can_build) load->effort = Effort::kWait;
  if (load->effort != Effort::kBuild && !load->request.refusal.ok()) return load->request.refusal;
  KERNIX_ASSIGN_OR_RETURN(load->plan, MakePlan(load->request, include_roots, LimitsFor(load->max_parallel)));
  for (Unit& unit : load->request.units) unit.functions = {};  // they are in the unit's text, and among the request's
  load->known = std::make_shared<const KnownLoad>(
      KnownLoad{LoadKey(load->request, load->plan), load->request.toolchain, LoadWarnings(load->request)});
  return load;
}

absl::StatusOr<v1::LoadResult> Builder::Impl::Load(v1::LoadRequest request, UserId owner, LoadObserver& observer,
                                                   const CancellationPtr& cancellation) {
  const auto trace = std::make_shared<TraceRecorder>(env);
  KERNIX_ASSIGN_OR_RETURN(toolchain::ToolchainPtr toolchain,
                          toolchains.Resolve(request.toolchain(), request.language()));
  trace->Lap("identify tools");
  std::unique_ptr<exec::ByteQuota::Share> turn = TurnToPlan(owner);
  KERNIX_ASSIGN_OR_RETURN(const std::shared_ptr<PlannedLoad> load, Prepare(request, owner, std::move(toolchain)));
  load->trace = trace;
  trace->Lap("plan");
  const bool verbose = request.verbose();
  if (!load->force && !DependsOnFiles(load->request)) {
    ForgetAsker(request);
    load->request_digest = DigestOfRequest(request);
  }
  v1::LoadRequest().Swap(&request);  // frees its texts, which may be large; the load has its own copy
  turn.reset();
  if (std::optional<v1::LoadResult> hit = FindAndCount(*load)) return *std::move(hit);
  const Miss miss = ExplainMiss(cache, toolchains.digests(),
                                *load);  // before a build replaces the entry that the reason is read from
  const std::string& reason = miss.reason;
  if (verbose && load->effort == Effort::kBuild) observer.OnOutput(AnnounceBuild(load->tag.name, reason));
  trace->Lap("look up");
  bool mine = false;
  absl::StatusOr<v1::LoadResult> result = JoinLookups(*load, observer, cancellation);
  if (!result.ok() && KindOf(result.status()) == v1::ErrorDetail::NOT_CACHED) {
    KERNIX_ASSIGN_OR_RETURN(const FlightPtr flight, flights.JoinOrMake(*load, mine));
    if (!mine) CountJoined();
    result = Fly(load, flight, observer, verbose, cancellation);
  }
  // What an asker has loaded before is for nobody else.
  if (!result.ok() && KindOf(result.status()) == v1::ErrorDetail::NOT_CACHED) {
    const toolchain::Toolchain& tools = *load->request.toolchain;
    return CanBuildWith(tools) ? NotCached(load->tag.name, miss) : NotTaken(load->tag.name, tools, upstream);
  }
  // The builder stores the entry under the tag of one asker, which may not be this one.
  if (!result.ok()) return result;
  if (!result->cache_hit()) result->set_miss_reason(reason);
  result->set_joined(!mine && !result->cache_hit());
  result->mutable_warning()->Assign(load->known->warnings.begin(), load->known->warnings.end());
  KERNIX_RETURN_IF_ERROR(GiveOut(*load, *result));
  return result;
}

absl::StatusOr<v1::LoadResult> Builder::Impl::Fly(const std::shared_ptr<PlannedLoad>& load, const FlightPtr& flight,
                                                  LoadObserver& observer, bool verbose,
                                                  const CancellationPtr& cancellation) {
  bool started = false;
  const auto start = [&](HeaderContents contents) {
    started = true;
    StartBuild(load, flight, std::move(contents));
  };
  const Asking asking(step_runner, *flight->build_askers(), AskerOf(*load));
  OwnHeaders asker(header_cache, load->tag.owner, observer);
  absl::StatusOr<v1::LoadResult> result = flight->Await(asker, verbose, cancellation, start);
  if (flight->closed()) flights.Forget(flight);
  return result;
}

Builder::Impl::Asked Builder::Impl::Know(v1::LoadRequest request, const cache::Tag& tag) {
  // Load() finds out what tools these are.
  if (!toolchains.HasFound(request.toolchain(), request.language())) return {};
  const auto toolchain = toolchains.Resolve(request.toolchain(), request.language());
  if (!toolchain.ok() || !CheckModuleName(tag.name).ok()) return {};
  const Digest digest = DigestOfRequest(request);
  if (KnownLoadPtr known = known_loads.Find(digest, *toolchain)) return {std::move(known), digest, nullptr};
  request.set_name(tag.name);
  const auto turn = TurnToPlan(tag.owner);
  absl::StatusOr<std::shared_ptr<PlannedLoad>> load = Prepare(request, tag.owner, *toolchain);
  if (!load.ok() || !(*load)->request.refusal.ok()) return {};
  const bool is_certain = !DependsOnFiles((*load)->request);
  return {(*load)->known, is_certain ? std::optional(digest) : std::nullopt, *std::move(load)};
}

bool Builder::Impl::LookUp(v1::LoadRequest request, UserId owner, const DeliverHit& deliver,
                           const CancellationPtr& cancellation) {
  if (request.force_rebuild()) return false;
  const cache::Tag tag{std::move(*request.mutable_name()), owner};
  ForgetAsker(request);
  const Asked asked = Know(std::move(request), tag);
  const KnownLoadPtr& load = asked.known;
  if (load == nullptr) return false;
  std::optional<KnownHit> hit = Find(*load, owner);
  if (!hit) return asked.planned != nullptr && LookUpThere(asked.planned, deliver, cancellation);
  if (!deliver(hit->result)) return false;
  if (asked.request)
    known_loads.Add(*asked.request, owner, {load->key, load->toolchain, load->warnings, std::move(hit)});
  cache.Touch(load->key, tag);
  return true;
}

// Takes what the upstream has, at once: such a load needs neither gRPC nor its headers' contents. Lookups of one key
// look together.
bool Builder::Impl::LookUpThere(const std::shared_ptr<PlannedLoad>& load, const DeliverHit& deliver,
                                const CancellationPtr& cancellation) {
  if (upstream == nullptr || !upstream->reads() || !upstream->IsAnswered()) return false;
  load->effort = Effort::kLook;
  load->trace = std::make_shared<TraceRecorder>(env);
  bool mine = false;
  const absl::StatusOr<FlightPtr> flight = flights.JoinOrMake(*load, mine);
  if (!flight.ok() || *flight == nullptr) return false;
  NoObserver nobody;
  absl::StatusOr<v1::LoadResult> result = Fly(load, *flight, nobody, /*verbose=*/false, cancellation);
  if (!result.ok()) return false;
  if (!mine) CountJoined();
  if (mine && result->from_upstream()) cache.Count(cache::Total::kMisses);
  result->mutable_warning()->Assign(load->known->warnings.begin(), load->known->warnings.end());
  return GiveOut(*load, *result).ok() && deliver(*result);
}

absl::StatusOr<v1::LoadResult> Builder::Impl::JoinLookups(const PlannedLoad& load, LoadObserver& observer,
                                                          const CancellationPtr& cancellation) {
  const FlightPtr flight = load.force ? nullptr : flights.JoinLookups(load.key());
  if (flight == nullptr) return NothingThere();
  absl::StatusOr<v1::LoadResult> result = flight->Await(observer, /*verbose=*/false, cancellation, nullptr);
  if (flight->closed()) flights.Forget(flight);
  const bool is_cancelled = cancellation != nullptr && cancellation->cancelled();
  if (!result.ok()) return is_cancelled ? result.status() : NothingThere();
  CountJoined();
  return result;
}

void Builder::Impl::CountJoined() {
  cache.Count(cache::Total::kMisses);
  cache.Count(cache::Total::kJoined);
}

absl::Status Builder::Impl::GiveOut(const PlannedLoad& load, const v1::LoadResult& result) {
  cache.AddTag(load.key(), load.tag);
  KERNIX_ASSIGN_OR_RETURN(const Digest artifact, Digest::FromRaw(result.artifact_digest()));
  cache.Lend(artifact, load.tag.owner);
  return absl::OkStatus();
}

bool Builder::Impl::LookUpKnown(v1::LoadRequest& request, UserId owner, FileLook& look, const DeliverHit& deliver) {
  if (request.force_rebuild() || !CheckModuleName(request.name()).ok()) return false;
  const toolchain::ToolchainPtr toolchain = toolchains.FindKnown(request.toolchain(), request.language(), look);
  if (toolchain == nullptr) return false;
  cache::Tag tag{std::move(*request.mutable_name()), owner};
  const bool is_of_batch = request.batch();
  const bool only_cached = request.only_cached();
  ForgetAsker(request);
  const KnownLoadPtr load = known_loads.Find(DigestOfRequest(request), toolchain);
  request.set_name(tag.name);
  request.set_batch(is_of_batch);
  request.set_only_cached(only_cached);
  if (load == nullptr || !load->hit || !look.Unchanged(load->hit->headers)) return false;
  const KnownHit& hit = *load->hit;
  if (!cache.LendAgain(load->key, hit.artifact, hit.result.artifact_size(), hit.cache_changes, owner)) return false;
  if (!deliver(hit.result)) return false;
  cache.Touch(load->key, tag);
  return true;
}

std::optional<KnownHit> Builder::Impl::Find(const KnownLoad& load, UserId owner) {
  const uint64_t cache_changes = cache.changes(load.key);  // before the entry is read
  const absl::StatusOr<std::optional<cache::Entry>> entry = cache.Find(load.key);
  if (!entry.ok()) {
    // The load can still be served by a build. Whether the store accepts its result will show later.
    Log(LogLevel::kWarning, "cache_lookup_failed", {{"error", entry.status().ToString()}});
    return std::nullopt;
  }
  auto headers = std::make_shared<std::vector<WatchedFile>>();
  if (!entry->has_value() ||
      ChangedToolchainHeader(toolchains.digests(), *load.toolchain, (*entry)->toolchain_headers, *headers)) {
    return std::nullopt;
  }
  cache.Lend((*entry)->artifact, owner);
  KnownHit hit{ResultOf(load, **entry), (*entry)->artifact, std::move(headers), cache_changes};
  hit.result.set_cache_hit(true);
  return hit;
}

std::optional<v1::LoadResult> Builder::Impl::FindAndCount(const PlannedLoad& load) {
  if (load.force) return std::nullopt;
  std::optional<KnownHit> hit = Find(*load.known, load.tag.owner);
  if (!hit) return std::nullopt;
  cache.Touch(load.key(), load.tag);
  return std::move(hit->result);
}

v1::LoadResult Builder::Impl::ResultOf(const KnownLoad& load, const cache::Entry& entry) const {
  v1::LoadResult result;
  result.set_key(load.key.Raw());
  result.set_artifact_digest(entry.artifact.Raw());
  result.set_artifact_size(entry.size);
  result.set_artifact_path(cache.BlobPath(entry.artifact));
  for (const cache::Function& function : entry.functions) *result.add_function() = ResolvedFunctionOf(function);
  for (const std::string& version : entry.required_symbol_versions) result.add_required_symbol_versions(version);
  for (const v1::LoadWarning& warning : load.warnings) *result.add_warning() = warning;
  return result;
}

absl::Status Builder::Impl::StageBuild(PlannedLoad& load) {
  HeaderContents contents = load.headers;
  KERNIX_RETURN_IF_ERROR(CheckStagedBytes(load.request.headers, contents, options.limits.max_staged_header_bytes));
  KERNIX_RETURN_IF_ERROR(ReadFlagFiles(env, load.request.flag_files, contents));
  KERNIX_RETURN_IF_ERROR(CheckSources(env, load.request, options.flag_policy));
  KERNIX_RETURN_IF_ERROR(StagePlan(load.request, std::move(contents), header_trees, load.plan));
  if (!shared()) return absl::OkStatus();
  HideSourceLines(*load.request.toolchain, load.plan);
  for (Step& step : load.plan.steps) step.host_bodies_count = true;
  return absl::OkStatus();
}

PlanLimits Builder::Impl::LimitsFor(size_t max_parallel) const {
  const exec::ExecutorLoad pool = executor.load();
  // An action that counts as nearly the whole pool waits until the pool is free, and so does everybody behind it. An
  // explicit bound on a load states how much of the pool the load may take.
  const size_t wanted = max_parallel > 0 ? max_parallel : static_cast<size_t>(std::max(1, pool.max_jobs / 2));
  return {.step_timeout = options.step_timeout,
          .max_jobs = static_cast<int>(std::min<size_t>(wanted, pool.max_jobs)),
          .max_memory_bytes = pool.memory_budget_bytes,
          .builders = options.builders};
}

void Builder::Impl::StartBuild(const std::shared_ptr<PlannedLoad>& load, const FlightPtr& flight,
                               HeaderContents contents) {
  flights.BeginWork();
  // Whatever happens, the flight must end: everybody who asks for its key waits for it.
  const absl::Status started =
      CatchExceptions(kLoadNotHandled, [&] { return TryToStart(load, flight, std::move(contents)); });
  if (!started.ok()) Finish(*load, flight, started);
}

absl::Status Builder::Impl::TryToStart(const std::shared_ptr<PlannedLoad>& load, const FlightPtr& flight,
                                       HeaderContents contents) {
  // Another build of this key may have ended between our lookup and the start of this flight.
  if (std::optional<v1::LoadResult> hit = FindAndCount(*load)) {
    Finish(*load, flight, *std::move(hit));
    return absl::OkStatus();
  }
  if (load->effort != Effort::kLook) cache.Count(cache::Total::kMisses);  // the load counts, should this be in vain
  if (flight->fetches()) load->trace->Lap("receive headers");
  load->started = {env.Now(), env.UnixMillis()};
  load->headers = std::move(contents);
  if (upstream == nullptr || load->force || !load->request.refusal.ok()) return RunBuild(load, flight);
  auto go_on = [this, load, flight](const std::optional<remote::SharedResult>& found) {
    load->trace->Lap("ask upstream");
    const absl::Status went_on = CatchExceptions(kLoadNotHandled, [&] {
      if (found && TakeFromUpstream(*load, flight, *found)) return absl::OkStatus();
      return RunBuild(load, flight);
    });
    if (!went_on.ok()) Finish(*load, flight, went_on);
  };
  const bool may_build = load->effort == Effort::kBuild;
  const LookBudgetPtr vain = load->effort != Effort::kLook ? flights.TakeVainLook(load->key()) : nullptr;
  // One that cannot build looks again if the lookup had no time left.
  const bool is_absent = vain != nullptr && (may_build || !vain->IsSpent());
  load->looks = is_absent && may_build ? vain : upstream->NewBudget();
  UpstreamCache::Wanted wanted{.key = load->key(),
                               .toolchain = load->request.toolchain,
                               .room = cache.limit_bytes(),
                               .cancellation = flight->build_cancellation(),
                               .is_absent = is_absent,
                               .looks = load->looks};
  switch (load->effort) {
    case Effort::kBuild:
      upstream->FindOrWait(std::move(wanted), std::move(go_on));
      break;
    case Effort::kWait:  // does not say to other nodes that it builds
      upstream->FindOrJoin(std::move(wanted), std::move(go_on));
      break;
    case Effort::kLook:
      upstream->Find(std::move(wanted), std::move(go_on));
  }
  return absl::OkStatus();
}

absl::Status Builder::Impl::RunBuild(const std::shared_ptr<PlannedLoad>& load, const FlightPtr& flight) {
  if (load->effort == Effort::kLook) flights.NoteVainLook(load->key(), load->looks);
  if (load->effort != Effort::kBuild) return NothingThere();
  // Who shares a store gets the same bytes for a request, whoever has loaded it, and how. Nobody else compares the
  // tools' own calls with kernixd's.
  if (load->force && load->plan.mode == CompileMode::kFast) {
    load->plan.mode = shared() ? CompileMode::kAnew : CompileMode::kWhole;
  }
  flight->SetStepsTotal(static_cast<int>(load->plan.steps.size()));
  return RunSteps(load, flight, [this, load, flight](const PlanFiles& files, PlanEnd end) {
    Conclude(load, flight, files, std::move(end));
  });
}

absl::Status Builder::Impl::RunSteps(const std::shared_ptr<PlannedLoad>& load, const FlightPtr& flight,
                                     std::function<void(const PlanFiles&, PlanEnd)> done) {
  KERNIX_RETURN_IF_ERROR(StageBuild(*load));
  load->trace->Lap("stage");
  RankSteps(cache, *load);
  const PlanFiles files = load->plan.files;
  const auto trees = load->plan.trees;
  const auto observer = std::make_shared<BuildObserver>(*flight, load->trace, /*shows_output=*/!shared());
  RunPlan(
      {.steps = std::move(load->plan.steps), .toolchain = load->request.toolchain, .mode = load->plan.mode},
      flight->build_askers(), step_runner, flight->build_cancellation(), *observer,
      [this, files, trees, observer, done = std::move(done)](PlanEnd end) {
        header_trees.DropUnstaged(*trees);
        done(files, std::move(end));
      },
      load->looks,
      std::make_shared<HeldOutputs>(env, HeldOutputsOptions{.scratch_directory = cache.scratch_directory(),
                                                            .max_bytes = options.max_made_bytes,
                                                            .of_users = held_bytes,
                                                            .askers = flight->build_askers()}));
  return absl::OkStatus();
}

// What is wrong with it, or cannot be kept, is no error of the load, which builds instead.
bool Builder::Impl::TakeFromUpstream(const PlannedLoad& load, const FlightPtr& flight,
                                     const remote::SharedResult& found) {
  absl::StatusOr<v1::LoadResult> result = KeepFromUpstream(load, found);
  if (result.ok()) {
    Finish(load, flight, *std::move(result));
    return true;
  }
  Log(LogLevel::kWarning, "upstream_result_not_kept",
      {{"name", load.tag.name}, {"key", load.key().Hex()}, {"error", ToStd(result.status().message())}});
  return false;
}

absl::StatusOr<v1::LoadResult> Builder::Impl::KeepFromUpstream(const PlannedLoad& load,
                                                               const remote::SharedResult& found) {
  if (found.files.size() != 1) return absl::DataLossError("it is not an artifact");
  KERNIX_RETURN_IF_ERROR(CheckSources(env, load.request, options.flag_policy));  // what is not built is not taken
  const std::string_view artifact = *found.files.front().second;
  KERNIX_ASSIGN_OR_RETURN(std::vector<std::string> versions, InspectArtifact(artifact, load.request.functions));
  cache::Entry entry = NewEntry(load, artifact, std::move(versions));
  entry.origin = upstream->address();
  for (const remote::SharedHeader& header : found.headers) {
    entry.toolchain_headers.push_back({header.name, header.digest});
  }
  KERNIX_RETURN_IF_ERROR(cache.Insert(entry, load.tag, artifact));
  v1::LoadResult result = ResultOf(*load.known, entry);
  result.set_cache_hit(true);
  result.set_from_upstream(true);
  return result;
}

void Builder::Impl::Share(const PlannedLoad& load, const cache::Entry& entry, const std::string& artifact) {
  v1::LoadResult detail;
  for (const cache::Function& function : entry.functions) *detail.add_function() = ResolvedFunctionOf(function);
  detail.mutable_required_symbol_versions()->Assign(entry.required_symbol_versions.begin(),
                                                    entry.required_symbol_versions.end());
  upstream->Keep(load.key(), entry.toolchain_headers, {{kArtifactFile, exec::MakeContent(artifact)}},
                 detail.SerializeAsString());
}

void Builder::Impl::Conclude(const PlannedLoadPtr& load, const FlightPtr& flight, const PlanFiles& files, PlanEnd end) {
  const bool is_answer = end.status.ok() || IsInOurHeaders(end.status);
  if (is_answer && !load->request.refusal.ok()) return Finish(*load, flight, load->request.refusal);
  if (end.status.ok()) {
    return Finish(*load, flight, CatchExceptions(kLoadNotHandled, [&] { return Keep(*load, flight, files, end); }));
  }
  if (!load->request.refusal.ok() || !IsAfterSources(end.status)) return Tell(load, flight, files, std::move(end));
  const auto otherwise = std::make_shared<PlanEnd>(std::move(end));
  const absl::Status asking =
      CatchExceptions(kLoadNotHandled, [&] { return AskAboutSources(load, flight, files, otherwise); });
  if (!asking.ok()) Tell(load, flight, files, std::move(*otherwise));
}

absl::Status Builder::Impl::AskAboutSources(const PlannedLoadPtr& load, const FlightPtr& flight, const PlanFiles& files,
                                            std::shared_ptr<PlanEnd> otherwise) {
  const auto alone = std::make_shared<PlannedLoad>(*load);
  alone->request.refusal = otherwise->status;
  KERNIX_ASSIGN_OR_RETURN(alone->plan, MakePlan(alone->request, include_roots, LimitsFor(alone->max_parallel)));
  return RunSteps(alone, flight, [this, load, flight, files, otherwise](const PlanFiles& files_alone, PlanEnd end) {
    const bool knows_better = !end.status.ok() && KindOf(end.status) == v1::ErrorDetail::COMPILATION;
    if (knows_better) return Tell(load, flight, files_alone, std::move(end));
    Tell(load, flight, files, std::move(*otherwise));
  });
}

void Builder::Impl::Tell(const PlannedLoadPtr& load, const FlightPtr& flight, const PlanFiles& files, PlanEnd end) {
  if (!shared()) {
    const bool said_no = end.failed != nullptr && KindOf(end.status) == v1::ErrorDetail::COMPILATION;
    return Finish(*load, flight, said_no ? WithFailedCommand(end.status, end.failed->action) : end.status);
  }
  const absl::Status telling = CatchExceptions(kLoadNotHandled, [&] {
    const auto kept_files = std::make_shared<const PlanFiles>(files);
    TellFailure({env, executor, flight->build_askers(), load->request, load->headers, *kept_files, std::move(end),
                 flight->build_cancellation()},
                [this, load, flight, kept_files](absl::Status status) { Finish(*load, flight, std::move(status)); });
    return absl::OkStatus();
  });
  if (!telling.ok()) Finish(*load, flight, telling);
}

absl::StatusOr<v1::LoadResult> Builder::Impl::Keep(const PlannedLoad& load, const FlightPtr& flight,
                                                   const PlanFiles& files, const PlanEnd& end) {
  load.trace->Skip();
  const std::vector<std::string> dependencies = DependenciesOf(end.outputs, files);
  const ToolReads reads{{dependencies.begin(), dependencies.end()}, TextsOf(end.outputs, files.assembler_dependencies)};
  KERNIX_RETURN_IF_ERROR(CheckFilesRead(env, load.request, load.headers, reads, options.flag_policy));
  const std::string shown = shared() ? ShownOfSuccess(load.request, load.headers, end.printed) : end.printed;
  if (shared()) flight->OnOutput(shown);
  const std::string_view linked = *end.outputs.at(files.artifact);
  KERNIX_ASSIGN_OR_RETURN(std::vector<std::string> versions, InspectArtifact(linked, load.request.functions));
  v1::ArtifactTexts texts = TextsFor(load.request, load.plan.unit_texts, files.kept, end.outputs);
  texts.set_compiler_output(shown);
  KERNIX_ASSIGN_OR_RETURN(const std::string artifact, WithTexts(linked, texts, options.max_made_bytes));
  load.trace->Lap("check artifact");
  return Store(load, reads, artifact, std::move(versions));
}

absl::StatusOr<v1::LoadResult> Builder::Impl::Store(const PlannedLoad& load, const ToolReads& reads,
                                                    const std::string& artifact,
                                                    std::vector<std::string> symbol_versions) {
  cache::Entry entry = NewEntry(load, artifact, std::move(symbol_versions));
  HeadersRead headers =
      DigestToolchainHeaders(env, toolchains.digests(), *load.request.toolchain, reads.compiler, load.started);
  entry.toolchain_headers = std::move(headers.headers);
  KERNIX_RETURN_IF_ERROR(CheckNothingChanged(env, toolchains.digests(), load.request, load.started));
  load.trace->Lap("digest headers");
  const uint64_t changes_before = cache.changes(load.key());
  KERNIX_RETURN_IF_ERROR(cache.Insert(entry, load.tag, artifact, [&load] {
    load.trace->Lap("keep artifact");
    return load.trace->Trace();
  }));
  toolchains.Remember(*load.request.toolchain);
  if (upstream != nullptr && upstream->writes()) Share(load, entry, artifact);
  if (headers.states) RememberBuilt(load, entry, *std::move(headers.states), changes_before + 1);
  v1::LoadResult result = ResultOf(*load.known, entry);
  const auto wall = std::chrono::duration_cast<std::chrono::milliseconds>(env.Now() - load.started.monotonic);
  result.set_build_ms(static_cast<uint64_t>(wall.count()));
  return result;
}

// If the entry has changed meanwhile, a lookup finds out whether it is still there.
void Builder::Impl::RememberBuilt(const PlannedLoad& load, const cache::Entry& entry, std::vector<WatchedFile> headers,
                                  uint64_t cache_changes) {
  if (!load.request_digest || cache.changes(load.key()) != cache_changes) return;
  KnownHit hit{.result = ResultOf(*load.known, entry),
               .artifact = entry.artifact,
               .headers = std::make_shared<const std::vector<WatchedFile>>(std::move(headers)),
               .cache_changes = cache_changes};
  hit.result.set_cache_hit(true);
  known_loads.Add(*load.request_digest, load.tag.owner,
                  {load.key(), load.known->toolchain, load.known->warnings, std::move(hit)});
}

void Builder::Impl::Finish(const PlannedLoad& load, const FlightPtr& flight, absl::StatusOr<v1::LoadResult> result) {
  if (!result.ok()) result = WithOpenBrace(result.status(), load.request);
  if (!result.ok() && load.effort == Effort::kBuild) {
    CountFailure(load, result.status());
    const bool compiler_refuses = KindOf(result.status()) == v1::ErrorDetail::COMPILATION;
    const auto state = compiler_refuses ? remote::ClaimState::kFailed : remote::ClaimState::kLeft;
    if (upstream != nullptr) upstream->EndBuild(load.key(), state);
  }
  // In this order: a load that no longer finds the flight must find the entry.
  flights.Forget(flight);
  flight->Complete(std::move(result));
  flights.EndWork();
}

void Builder::Impl::CountFailure(const PlannedLoad& load, const absl::Status& status) {
  const bool cancelled = KindOf(status) == v1::ErrorDetail::CANCELLED;
  cache.Count(cancelled ? cache::Total::kCancelled : cache::Total::kFailures);
  const std::string user = StrCat(ToNumber(load.tag.owner));
  LogOf(user, LogLevel::kInfo, cancelled ? "build_cancelled" : "build_failed",
        {{"name", load.tag.name}, {"key", load.key().Hex()}, {"error", ToStd(status.message())}});
}

Builder::Builder(Env& env, BuilderOptions options, toolchain::ToolchainRegistry& toolchains, exec::Executor& executor,
                 cache::Cache& cache, exec::Executor* background, UpstreamCache* upstream)
    : impl_(std::make_unique<Impl>(env, std::move(options), toolchains, executor, cache, background, upstream)) {}

Builder::~Builder() { impl_->flights.StopAndWait(); }

void Builder::Register(MetricsRegistry& registry) const {
  impl_->step_runner.Register(registry);
  impl_->step_cache.Register(registry);
}

size_t Builder::LessonsLeft() const { return impl_->step_runner.LessonsLeft(); }

void Builder::ForgetSteps() { impl_->step_cache.RemoveAll(); }

absl::StatusOr<v1::LoadResult> Builder::Load(v1::LoadRequest request, UserId owner, LoadObserver& observer,
                                             CancellationPtr cancellation) {
  const Flights::Work work(impl_->flights);
  return impl_->Load(std::move(request), owner, observer, cancellation);
}

bool Builder::LookUp(v1::LoadRequest request, UserId owner, const DeliverHit& deliver, CancellationPtr cancellation) {
  const Flights::Work work(impl_->flights);
  return impl_->LookUp(std::move(request), owner, deliver, cancellation);
}

bool Builder::LookUpKnown(v1::LoadRequest& request, UserId owner, FileLook& look, const DeliverHit& deliver) {
  const Flights::Work work(impl_->flights);
  return impl_->LookUpKnown(request, owner, look, deliver);
}

}  // namespace kernix::build
