// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/builder.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "common/base/error.h"
#include "common/base/exceptions.h"
#include "common/base/log.h"
#include "common/base/module_name.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "daemon/builder/artifact.h"
#include "daemon/builder/build_description.h"
#include "daemon/builder/build_inputs.h"
#include "daemon/builder/early_runs.h"
#include "daemon/builder/failed_command.h"
#include "daemon/builder/files_read.h"
#include "daemon/builder/flight.h"
#include "daemon/builder/header_cache.h"
#include "daemon/builder/known_loads.h"
#include "daemon/builder/miss_reason.h"
#include "daemon/builder/plan_runner.h"
#include "daemon/builder/resolved_function.h"
#include "daemon/builder/shared_output.h"
#include "daemon/builder/step_cache.h"
#include "daemon/builder/step_runner.h"
#include "daemon/builder/toolchain_headers.h"
#include "daemon/builder/trace_recorder.h"
#include "daemon/builder/upstream_cache.h"
#include "daemon/language/spec/source_text.h"
#include "daemon/plan/load_key.h"
#include "daemon/plan/plan.h"
#include "daemon/plan/step_memory.h"
#include "daemon/plan/tool_places.h"
#include "daemon/request/load_warnings.h"
#include "daemon/toolchain/description.h"

namespace kernix::build {
namespace {

// How far a flight goes for an artifact that is not in the cache.
enum class Effort {
  kBuild,
  kWait,  // takes what the upstream has, and waits for a node that builds it
  kLook,  // takes what the upstream has now: what a lookup can wait for
};

// The data of one build, for as long as it runs.
struct PlannedLoad {
  BuildRequest request;
  Plan plan;
  KnownLoadPtr known;
  std::optional<Digest> request_digest;  // of what a lookup would ask; nothing if no lookup can know the answer
  cache::Tag tag;
  bool force = false;
  size_t max_parallel = 0;
  bool batch = false;
  Effort effort = Effort::kBuild;
  std::shared_ptr<TraceRecorder> trace;  // null for a lookup of what is in the cache
  std::shared_ptr<EarlyRuns> early;      // null: none has begun

  // Set when the build starts.
  BuildStart started;
  HeaderContents headers;

  const Digest& key() const { return known->key; }
};

using PlannedLoadPtr = std::shared_ptr<const PlannedLoad>;
using FlightPtr = std::shared_ptr<Flight>;

// Loads of different effort fly apart: one that may build would wait for others in vain. Those that may not join it
// only while the build runs.
using FlightKey = std::pair<Digest, Effort>;

FlightKey KeyOfFlight(const PlannedLoad& load) { return {load.key(), load.effort}; }

// For how long a load need not ask the upstream again, after a lookup of the same request has asked in vain.
constexpr Duration kFreshAnswer{1'000};
constexpr size_t kMostVainLooks = 1024;

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

// The name of the one file that nodes share of a load.
constexpr char kArtifactFile[] = "artifact";

// Enough to name one entry of a store: `kernixctl cache show` takes the beginning of a key.
constexpr size_t kShownKeyDigits = 12;

// With how many earlier loads of its name a miss is compared.
constexpr size_t kMostCompared = 16;

std::vector<Digest> DistinctDigests(const std::vector<HeaderRef>& headers) {
  std::vector<Digest> digests;
  for (const HeaderRef& header : headers) digests.push_back(header.digest);
  std::sort(digests.begin(), digests.end());
  digests.erase(std::unique(digests.begin(), digests.end()), digests.end());
  return digests;
}

// What the answer to a request does not depend on.
void ForgetAsker(v1::LoadRequest& request) {
  request.clear_name();
  request.clear_batch();
  request.clear_only_cached();
}

// What builds of one name have needed before: the most of the recent ones.
struct Experience {
  std::chrono::microseconds work{0};
  std::shared_ptr<const MemoryByName> memory;
};

// The place of a build among the user's others. What is left of an earlier one goes first: it ends sooner, and holds
// what its steps have made for less long. But what takes longest must not begin last: a build whose like has worked for
// a minute counts as begun a minute earlier. Batches count as begun a day later.
uint64_t RankOf(MonotonicTime start, std::chrono::microseconds work_before, bool is_of_batch) {
  const auto since_boot = std::chrono::duration_cast<std::chrono::microseconds>(start.time_since_epoch());
  const auto counted = since_boot - std::min(since_boot, work_before) + std::chrono::hours(is_of_batch ? 24 : 0);
  return static_cast<uint64_t>(counted.count());
}

// Nobody waits for one load of a batch. Its host compiles wait until the device code of all loads is under way, so that
// the longest chain of steps, which nobody knows yet, begins sooner.
uint64_t HostRankOf(uint64_t rank, bool is_of_batch) {
  return rank + (is_of_batch ? std::chrono::microseconds(std::chrono::minutes(1)).count() : 0);
}

// One content may be staged under several names.
absl::Status CheckStagedBytes(const std::vector<HeaderRef>& headers, const HeaderContents& contents, uint64_t limit) {
  uint64_t bytes = CountFolders(headers) * kBlockBytes;
  for (const HeaderRef& header : headers) bytes += contents.at(header.digest)->size();
  if (bytes <= limit) return absl::OkStatus();
  return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                   StrCat("the headers of this load take ", bytes, " bytes as files and folders; at most ", limit,
                          " are allowed: narrow the include paths"));
}

// The error for a file that no longer matches the key.
absl::Status Outdated(const std::string& what) {
  v1::ErrorDetail detail;
  detail.set_kind(v1::ErrorDetail::TOOLCHAIN);
  detail.set_code(static_cast<int>(absl::StatusCode::kAborted));
  detail.set_message(StrCat(what, " changed while it was being used: load again"));
  return MakeError(std::move(detail));
}

// Checks after a build that the tools and the files that flags name are those that its key was made from.
absl::Status CheckNothingChanged(Env& env, toolchain::FileDigests& digests, const BuildRequest& request,
                                 const BuildStart& start) {
  if (!Unchanged(env, request.toolchain->files)) {
    return Outdated(StrCat("the toolchain of ", request.toolchain->host.path));
  }
  for (const toolchain::FlagFile& file : request.flag_files) {
    if (toolchain::IsDescribed(*request.toolchain, file.path)) continue;  // it is on builders
    const auto content = digests.GetContent(file.path);
    if (!content.ok() || content->digest != file.digest) return Outdated(file.path);
    // The file may have changed and changed back during the build. Staged content always matches the key.
    if (file.staged.empty() && content->since > start.monotonic) return Outdated(file.path);
  }
  return absl::OkStatus();
}

// Adds the content of the flag files that are staged.
absl::Status ReadFlagFiles(Env& env, const std::vector<toolchain::FlagFile>& files, HeaderContents& contents) {
  for (const toolchain::FlagFile& file : files) {
    if (file.staged.empty()) continue;
    absl::StatusOr<std::string> content = env.ReadFile(file.path);
    if (!content.ok() || DigestOf(*content) != file.digest) return Outdated(file.path);
    contents[file.digest] = std::make_shared<const std::string>(*std::move(content));
  }
  return absl::OkStatus();
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

// The error of a load that may not build.
absl::Status NotCached(const std::string& name, const Miss& miss) {
  std::string nearest = "You have nothing of this name there.";
  if (miss.nearest) {
    nearest = StrCat("The nearest that you have there, ", miss.nearest->Hex().substr(0, kShownKeyDigits),
                     ", differs: ", miss.reason, ".");
  }
  return MakeError(v1::ErrorDetail::NOT_CACHED,
                   StrCat("the cache does not have the kernels of module \"", Printable(name),
                          "\", and the policy \"cached\" compiles nothing. ", nearest,
                          " Prefetch them, or load with the policy \"build\"."));
}

// The error of a load whose compilers are on another node. `upstream`: null if there is none.
absl::Status NotTaken(const std::string& name, const toolchain::Toolchain& toolchain, const UpstreamCache* upstream) {
  std::string where = "upstream.address names no engine to take them from";
  if (upstream != nullptr) {
    where = StrCat("the engine at ", upstream->address(),
                   upstream->IsAnswered() ? " has none that fits" : " does not answer");
  }
  return MakeError(
      v1::ErrorDetail::NOT_CACHED,
      StrCat(
          "this node has no compiler for module \"", Printable(name), "\": its kernels are not in the cache, and ",
          where, ". Load or prefetch them on a node with ", toolchain::DescribeTools(toolchain),
          " that writes to the engine, then load again; or have an engine's builders compile them (upstream.steps)."));
}

absl::Status NothingThere() { return MakeError(v1::ErrorDetail::NOT_CACHED, "it is not in the cache"); }

absl::Status NothingToBuildWith(const toolchain::Toolchain& toolchain) {
  return MakeError(v1::ErrorDetail::TOOLCHAIN,
                   StrCat("force_rebuild needs a compiler, and this node only has the description of one, ",
                          toolchain.described->file, ": load without it, or where the compilers are"));
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

  // Keeps the builder alive while a load or build is under way.
  void BeginWork();
  void EndWork();
  class Work;  // calls BeginWork(), then EndWork() when destroyed
  void StopAndWait();

  absl::StatusOr<v1::LoadResult> Load(v1::LoadRequest request, UserId owner, LoadObserver& observer,
                                      const CancellationPtr& cancellation);
  // Begins the compiles of a load while its tools, which have answered, are being identified. Null: none has begun.
  std::shared_ptr<EarlyRuns> CompileEarly(const v1::LoadRequest& request, UserId owner,
                                          const toolchain::ToolchainPtr& asked);
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
  // Why there is no hit for `load`, for people. Compares only with what its user has loaded under its name.
  Miss ExplainMiss(const PlannedLoad& load);
  // The most that recent builds of this name have worked, in all their steps.
  Experience ExperienceWith(const cache::Tag& tag);
  v1::LoadResult ResultOf(const KnownLoad& load, const cache::Entry& entry) const;

  // Joins the flight of `load`'s key, making one if needed. `mine`: this call made it. Null: a load flies that does
  // more than this lookup.
  absl::StatusOr<FlightPtr> JoinOrMake(const PlannedLoad& load, bool& mine);
  FlightPtr MakeFlight(const BuildRequest& request);
  // Null if there is none that takes askers.
  FlightPtr Join(const FlightKey& key, bool only_running = false) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // What lookups of the same key that look in the upstream now find there. NOT_CACHED: nothing, or there are none.
  absl::StatusOr<v1::LoadResult> JoinLookups(const PlannedLoad& load, LoadObserver& observer,
                                             const CancellationPtr& cancellation);
  void NoteVainLook(const Digest& key);
  // Whether a lookup has just asked for this key in vain. Forgets that.
  bool HasLookedInVain(const Digest& key);
  void Forget(const FlightKey& key, const FlightPtr& flight);
  void CountJoined();
  // Lends the artifact to the load's user, and notes the tag.
  absl::Status GiveOut(const PlannedLoad& load, const v1::LoadResult& result);
  absl::StatusOr<v1::LoadResult> Fly(const PlannedLoadPtr& load, const FlightPtr& flight, LoadObserver& observer,
                                     bool verbose, const CancellationPtr& cancellation);

  void StartBuild(const PlannedLoadPtr& load, const FlightPtr& flight, HeaderContents contents);
  // If it fails, the caller calls Finish(); otherwise Finish() is called when the build ends.
  absl::Status TryToStart(const PlannedLoad& load, const FlightPtr& flight, HeaderContents contents);
  // Takes what another node has built. Returns whether that ended the flight.
  bool TakeFromUpstream(const PlannedLoad& load, const FlightPtr& flight, const remote::SharedResult& found);
  absl::StatusOr<v1::LoadResult> KeepFromUpstream(const PlannedLoad& load, const remote::SharedResult& found);
  void Share(const PlannedLoad& load, const cache::Entry& entry, const std::string& artifact);
  // If it fails, the caller calls Finish(); otherwise Finish() is called when the build ends.
  absl::Status RunBuild(const std::shared_ptr<PlannedLoad>& load, const FlightPtr& flight);
  absl::Status StageBuild(PlannedLoad& load);
  // Says when its steps shall run, and what they need. Needs the load's start.
  void RankSteps(PlannedLoad& load);
  PlanLimits LimitsFor(size_t max_parallel) const;
  void Finish(const PlannedLoad& load, const FlightPtr& flight, absl::StatusOr<v1::LoadResult> result);
  bool CanBuildWith(const toolchain::Toolchain& tools) const {
    return tools.described == nullptr || options.builds_described;
  }
  bool shared() const { return options.flag_policy == toolchain::FlagPolicy::kShared; }
  void Conclude(const PlannedLoadPtr& load, const FlightPtr& flight, const PlanFiles& files, PlanEnd end);
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
  const std::shared_ptr<EarlyRunCounts> early_counts = std::make_shared<EarlyRunCounts>();
  StepCache step_cache{env, toolchains.digests(), cache.steps_directory(), kStepCacheBytes, upstream};
  const std::unique_ptr<StepRunner> lessons;  // null: nothing is learned
  StepRunner step_runner{env, executor, step_cache, lessons.get()};
  HeaderCache header_cache{kHeaderCacheBytes};
  HeaderTrees header_trees{kHeaderTreeBytes};
  IncludeRootsMemo include_roots;
  KnownLoads known_loads{kKnownLoads};

  Mutex mutex;
  CondVar idle;
  bool stopping ABSL_GUARDED_BY(mutex) = false;
  int work ABSL_GUARDED_BY(mutex) = 0;  // number of loads and builds
  absl::flat_hash_map<FlightKey, FlightPtr> flights ABSL_GUARDED_BY(mutex);
  absl::flat_hash_map<Digest, MonotonicTime> vain_looks ABSL_GUARDED_BY(mutex);
};

void Builder::Impl::BeginWork() {
  const MutexLock lock(mutex);
  ++work;
}

void Builder::Impl::EndWork() {
  const MutexLock lock(mutex);
  // Under the lock: once it is released, the builder may be destroyed.
  if (--work == 0) idle.NotifyAll();
}

class Builder::Impl::Work {
 public:
  explicit Work(Impl& impl) : impl_(impl) { impl_.BeginWork(); }
  ~Work() { impl_.EndWork(); }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

 private:
  Impl& impl_;
};

void Builder::Impl::StopAndWait() {
  std::vector<FlightPtr> running;
  {
    const MutexLock lock(mutex);
    stopping = true;
    for (const auto& [key, flight] : flights) running.push_back(flight);
  }
  for (const FlightPtr& flight : running) flight->build_cancellation()->Cancel();
  const MutexLock lock(mutex);
  while (work > 0) idle.Wait(mutex);
}

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
  KERNIX_ASSIGN_OR_RETURN(load->plan, MakePlan(load->request, include_roots, LimitsFor(load->max_parallel)));
  load->known = std::make_shared<const KnownLoad>(
      KnownLoad{LoadKey(load->request, load->plan), load->request.toolchain, LoadWarnings(load->request)});
  return load;
}

// Not if there is an upstream: another node may have the result, and an engine would keep what its builders make of an
// action without a salt. Not if the user may not compile with these tools, if nobody waits for this load alone, or if
// the load has files that a client must send, or that may change.
std::shared_ptr<EarlyRuns> Builder::Impl::CompileEarly(const v1::LoadRequest& request, UserId owner,
                                                       const toolchain::ToolchainPtr& asked) {
  const bool takes_shortcuts = !request.force_rebuild() && !request.only_cached() && !request.batch();
  if (shared() || upstream != nullptr || !takes_shortcuts) return nullptr;
  const auto early = std::make_shared<EarlyRuns>(env, executor, owner, early_counts);
  const absl::Status begun = CatchExceptions("not compiled early", [&]() -> absl::Status {
    KERNIX_ASSIGN_OR_RETURN(const std::shared_ptr<PlannedLoad> load, Prepare(request, owner, asked));
    if (!load->request.headers.empty() || DependsOnFiles(load->request)) return absl::OkStatus();
    KERNIX_RETURN_IF_ERROR(StageBuild(*load));
    load->started = early->start();
    RankSteps(*load);
    size_t left = load->max_parallel > 0 ? load->max_parallel : load->plan.steps.size();
    for (const Step& step : load->plan.steps) {
      if (step.tool != Tool::kHostCompiler || !step.reads_sources) continue;
      if (left-- == 0) break;
      early->Begin(step.action);
    }
    return absl::OkStatus();
  });
  (void)begun;  // whatever is wrong, the load says so
  return early->any() ? early : nullptr;
}

absl::StatusOr<v1::LoadResult> Builder::Impl::Load(v1::LoadRequest request, UserId owner, LoadObserver& observer,
                                                   const CancellationPtr& cancellation) {
  const auto trace = std::make_shared<TraceRecorder>(env);
  std::shared_ptr<EarlyRuns> early;
  KERNIX_ASSIGN_OR_RETURN(
      toolchain::ToolchainPtr toolchain,
      toolchains.Resolve(request.toolchain(), request.language(), [&](const toolchain::ToolchainPtr& asked) {
        early = CompileEarly(request, owner, asked);
        return early != nullptr;
      }));
  trace->Lap("identify tools");
  KERNIX_ASSIGN_OR_RETURN(const std::shared_ptr<PlannedLoad> load, Prepare(request, owner, std::move(toolchain)));
  load->trace = trace;
  load->early = std::move(early);
  trace->Lap("plan");
  const bool verbose = request.verbose();
  if (!load->force && !DependsOnFiles(load->request)) {
    ForgetAsker(request);
    load->request_digest = DigestOfRequest(request);
  }
  v1::LoadRequest().Swap(&request);  // frees its texts, which may be large; the load has its own copy
  if (std::optional<v1::LoadResult> hit = FindAndCount(*load)) return *std::move(hit);
  const Miss miss = ExplainMiss(*load);  // before a build replaces the entry that the reason is read from
  const std::string& reason = miss.reason;
  if (verbose && load->effort == Effort::kBuild) observer.OnOutput(AnnounceBuild(load->tag.name, reason));
  trace->Lap("look up");
  bool mine = false;
  absl::StatusOr<v1::LoadResult> result = JoinLookups(*load, observer, cancellation);
  if (!result.ok() && KindOf(result.status()) == v1::ErrorDetail::NOT_CACHED) {
    KERNIX_ASSIGN_OR_RETURN(const FlightPtr flight, JoinOrMake(*load, mine));
    if (!mine) load->early.reset();
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

absl::StatusOr<v1::LoadResult> Builder::Impl::Fly(const PlannedLoadPtr& load, const FlightPtr& flight,
                                                  LoadObserver& observer, bool verbose,
                                                  const CancellationPtr& cancellation) {
  bool started = false;
  const auto start = [&](HeaderContents contents) {
    started = true;
    StartBuild(load, flight, std::move(contents));
  };
  absl::StatusOr<v1::LoadResult> result = flight->Await(observer, verbose, cancellation, start);
  if (flight->closed()) Forget(KeyOfFlight(*load), flight);
  // Its compiles have begun, and end now.
  const bool was_cancelled = !result.ok() && KindOf(result.status()) == v1::ErrorDetail::CANCELLED;
  if (was_cancelled && !started && load->early != nullptr) cache.Count(cache::Total::kCancelled);
  return result;
}

Builder::Impl::Asked Builder::Impl::Know(v1::LoadRequest request, const cache::Tag& tag) {
  // Load() finds out what tools these are, and compiles meanwhile.
  if (!toolchains.HasFound(request.toolchain(), request.language())) return {};
  const auto toolchain = toolchains.Resolve(request.toolchain(), request.language());
  if (!toolchain.ok() || !CheckModuleName(tag.name).ok()) return {};
  const Digest digest = DigestOfRequest(request);
  if (KnownLoadPtr known = known_loads.Find(digest, *toolchain)) return {std::move(known), digest, nullptr};
  request.set_name(tag.name);
  absl::StatusOr<std::shared_ptr<PlannedLoad>> load = Prepare(request, tag.owner, *toolchain);
  if (!load.ok()) return {};
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
  if (asked.request) known_loads.Add(*asked.request, {load->key, load->toolchain, load->warnings, std::move(hit)});
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
  const absl::StatusOr<FlightPtr> flight = JoinOrMake(*load, mine);
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
  FlightPtr flight;
  if (!load.force) {
    const MutexLock lock(mutex);
    flight = Join({load.key(), Effort::kLook}, /*only_running=*/true);
  }
  if (flight == nullptr) return NothingThere();
  absl::StatusOr<v1::LoadResult> result = flight->Await(observer, /*verbose=*/false, cancellation, nullptr);
  if (flight->closed()) Forget({load.key(), Effort::kLook}, flight);
  const bool is_cancelled = cancellation != nullptr && cancellation->cancelled();
  if (!result.ok()) return is_cancelled ? result.status() : NothingThere();
  CountJoined();
  return result;
}

// Of the keys that nobody then loads, some are forgotten.
void Builder::Impl::NoteVainLook(const Digest& key) {
  const MutexLock lock(mutex);
  if (vain_looks.size() >= kMostVainLooks) vain_looks.clear();
  vain_looks[key] = env.Now();
}

bool Builder::Impl::HasLookedInVain(const Digest& key) {
  const MutexLock lock(mutex);
  const auto look = vain_looks.extract(key);
  return !look.empty() && env.Now() - look.mapped() < kFreshAnswer;
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
  if (!cache.LendAgain(hit.artifact, hit.result.artifact_size(), hit.cache_changes, owner)) return false;
  if (!deliver(hit.result)) return false;
  cache.Touch(load->key, tag);
  return true;
}

std::optional<KnownHit> Builder::Impl::Find(const KnownLoad& load, UserId owner) {
  const uint64_t cache_changes = cache.changes();  // before the entry is read
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

Miss Builder::Impl::ExplainMiss(const PlannedLoad& load) {
  if (load.force) return {"force_rebuild"};
  const absl::StatusOr<std::vector<cache::BuiltFrom>> earlier = cache.Recent(load.tag, kMostCompared);
  if (!earlier.ok()) return {"not known: the cache cannot be read"};
  const bool has_key = std::any_of(earlier->begin(), earlier->end(),
                                   [&](const cache::BuiltFrom& built) { return built.key == load.key(); });
  if (!has_key) return CompareWithEarlier(InputsOf(load.request), *earlier);
  const absl::StatusOr<std::optional<cache::Entry>> entry = cache.Find(load.key());
  if (!entry.ok() || !entry->has_value()) return {"not known: the earlier kernel has just left the cache"};
  std::vector<WatchedFile> unchanged;
  const std::optional<std::string> header =
      ChangedToolchainHeader(toolchains.digests(), *load.request.toolchain, (*entry)->toolchain_headers, unchanged);
  if (!header) return {"another load has just built it"};
  return {Printable(StrCat("toolchain header ", *header, " changed")), load.key()};
}

Experience Builder::Impl::ExperienceWith(const cache::Tag& tag) {
  Experience experience;
  MemoryByName memory;
  for (const cache::BuiltFrom& built : cache.Recent(tag, kMostCompared).value_or(std::vector<cache::BuiltFrom>())) {
    const auto trace = cache.TraceOf(built.key);
    if (!trace.ok() || !trace->has_value()) continue;
    uint64_t work_us = 0;
    for (const cache::TracedStep& step : (*trace)->steps) {
      if (step.way == cache::StepWay::kRun || step.way == cache::StepWay::kRemote) work_us += step.took_us;
      if (step.peak_memory_bytes == 0) continue;
      uint64_t& most = memory[step.name];
      most = std::max(most, step.peak_memory_bytes);
    }
    experience.work = std::max(experience.work, std::chrono::microseconds(work_us));
  }
  experience.memory = std::make_shared<const MemoryByName>(std::move(memory));
  return experience;
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

FlightPtr Builder::Impl::Join(const FlightKey& key, bool only_running) {
  const auto found = flights.find(key);
  return found != flights.end() && found->second->Join(only_running) ? found->second : nullptr;
}

absl::StatusOr<FlightPtr> Builder::Impl::JoinOrMake(const PlannedLoad& load, bool& mine) {
  const MutexLock lock(mutex);
  if (stopping) return MakeError(v1::ErrorDetail::CANCELLED, "kernixd is stopping");
  mine = false;
  const FlightKey build{load.key(), Effort::kBuild};
  const FlightKey wait{load.key(), Effort::kWait};
  if (load.effort == Effort::kLook && (flights.contains(build) || flights.contains(wait))) return nullptr;
  if (load.effort == Effort::kWait) {
    if (FlightPtr building = Join(build, /*only_running=*/true)) return building;
  }
  if (FlightPtr joined = Join(KeyOfFlight(load))) return joined;
  mine = true;
  FlightPtr flight = load.effort == Effort::kBuild ? MakeFlight(load.request)
                                                   : std::make_shared<Flight>(std::vector<Digest>(), options.linger);
  flight->Join();
  flights.insert_or_assign(KeyOfFlight(load), flight);
  return flight;
}

FlightPtr Builder::Impl::MakeFlight(const BuildRequest& request) {
  std::vector<Digest> missing = DistinctDigests(request.headers);
  HeaderContents known = header_cache.Find(missing);
  std::erase_if(missing, [&](const Digest& digest) { return known.contains(digest); });
  return std::make_shared<Flight>(std::move(missing), options.linger, std::move(known));
}

void Builder::Impl::Forget(const FlightKey& key, const FlightPtr& flight) {
  const MutexLock lock(mutex);
  const auto found = flights.find(key);
  if (found != flights.end() && found->second == flight) flights.erase(found);
}

absl::Status Builder::Impl::StageBuild(PlannedLoad& load) {
  HeaderContents contents = load.headers;
  KERNIX_RETURN_IF_ERROR(CheckStagedBytes(load.request.headers, contents, options.limits.max_staged_header_bytes));
  KERNIX_RETURN_IF_ERROR(ReadFlagFiles(env, load.request.flag_files, contents));
  KERNIX_RETURN_IF_ERROR(CheckSources(env, load.request, options.flag_policy));
  KERNIX_RETURN_IF_ERROR(StagePlan(load.request, std::move(contents), header_trees, load.plan));
  if (shared()) HideSourceLines(*load.request.toolchain, load.plan);
  return absl::OkStatus();
}

void Builder::Impl::RankSteps(PlannedLoad& load) {
  const Experience experience = ExperienceWith(load.tag);
  const uint64_t rank = RankOf(load.started.monotonic, experience.work, load.batch);
  for (Step& step : load.plan.steps) {
    step.memory_before = experience.memory;
    UseExperience(step);
    step.action.rank = rank;
    step.host_rank = HostRankOf(rank, load.batch);
  }
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

void Builder::Impl::StartBuild(const PlannedLoadPtr& load, const FlightPtr& flight, HeaderContents contents) {
  BeginWork();
  // Whatever happens, the flight must end: everybody who asks for its key waits for it.
  const absl::Status started =
      CatchExceptions(kLoadNotHandled, [&] { return TryToStart(*load, flight, std::move(contents)); });
  if (!started.ok()) Finish(*load, flight, started);
}

absl::Status Builder::Impl::TryToStart(const PlannedLoad& load, const FlightPtr& flight, HeaderContents contents) {
  // Another build of this key may have ended between our lookup and the start of this flight.
  if (std::optional<v1::LoadResult> hit = FindAndCount(load)) {
    Finish(load, flight, *std::move(hit));
    return absl::OkStatus();
  }
  if (load.effort != Effort::kLook) cache.Count(cache::Total::kMisses);  // the load counts, should this be in vain
  if (flight->fetches()) load.trace->Lap("receive headers");
  auto started = std::make_shared<PlannedLoad>(load);
  started->started = load.early != nullptr ? load.early->start() : BuildStart{env.Now(), env.UnixMillis()};
  started->headers = std::move(contents);
  header_cache.Add(started->headers);
  if (upstream == nullptr || load.force) return RunBuild(started, flight);
  auto go_on = [this, started, flight](const std::optional<remote::SharedResult>& found) {
    started->trace->Lap("ask upstream");
    const absl::Status went_on = CatchExceptions(kLoadNotHandled, [&] {
      if (found && TakeFromUpstream(*started, flight, *found)) return absl::OkStatus();
      return RunBuild(started, flight);
    });
    if (!went_on.ok()) Finish(*started, flight, went_on);
  };
  UpstreamCache::Wanted wanted{load.key(), load.request.toolchain, cache.limit_bytes(), flight->build_cancellation()};
  wanted.is_absent = load.effort != Effort::kLook && HasLookedInVain(load.key());
  switch (load.effort) {
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
  if (load->effort == Effort::kLook) NoteVainLook(load->key());
  if (load->effort != Effort::kBuild) return NothingThere();
  KERNIX_RETURN_IF_ERROR(StageBuild(*load));
  load->trace->Lap("stage");
  flight->SetStepsTotal(static_cast<int>(load->plan.steps.size()));
  RankSteps(*load);
  const PlanFiles files = load->plan.files;
  const auto trees = load->plan.trees;
  const auto observer = std::make_shared<BuildObserver>(*flight, load->trace, /*shows_output=*/!shared());
  RunPlan(
      {.steps = std::move(load->plan.steps),
       .toolchain = load->request.toolchain,
       .take_shortcuts = !load->force,
       .max_output_bytes = options.max_made_bytes},
      load->tag.owner, step_runner, load->max_parallel, flight->build_cancellation(), *observer,
      [this, load, flight, files, trees, observer](PlanEnd end) {
        header_trees.DropUnstaged(*trees);
        Conclude(load, flight, files, std::move(end));
      },
      load->early);
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
  const std::string& artifact = *found.files.front().second;
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
  upstream->Keep(load.key(), entry.toolchain_headers, {{kArtifactFile, std::make_shared<const std::string>(artifact)}},
                 detail.SerializeAsString());
}

void Builder::Impl::Conclude(const PlannedLoadPtr& load, const FlightPtr& flight, const PlanFiles& files, PlanEnd end) {
  if (end.status.ok()) {
    return Finish(*load, flight, CatchExceptions(kLoadNotHandled, [&] { return Keep(*load, flight, files, end); }));
  }
  if (!shared()) {
    const bool said_no = end.failed != nullptr && KindOf(end.status) == v1::ErrorDetail::COMPILATION;
    return Finish(*load, flight, said_no ? WithFailedCommand(end.status, end.failed->action) : end.status);
  }
  const absl::Status telling = CatchExceptions(kLoadNotHandled, [&] {
    const auto kept_files = std::make_shared<const PlanFiles>(files);
    TellFailure({env, executor, load->tag.owner, load->request, load->headers, *kept_files, std::move(end),
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
  const std::string& linked = *end.outputs.at(files.artifact);
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
  const uint64_t changes_before = cache.changes();
  KERNIX_RETURN_IF_ERROR(cache.Insert(entry, load.tag, artifact, [&load] {
    load.trace->Lap("keep artifact");
    return load.trace->Trace();
  }));
  if (upstream != nullptr && upstream->writes()) Share(load, entry, artifact);
  if (headers.states) RememberBuilt(load, entry, *std::move(headers.states), changes_before + 1);
  v1::LoadResult result = ResultOf(*load.known, entry);
  const auto wall = std::chrono::duration_cast<std::chrono::milliseconds>(env.Now() - load.started.monotonic);
  result.set_build_ms(static_cast<uint64_t>(wall.count()));
  return result;
}

// If the cache has changed meanwhile by more than this entry, a lookup finds out whether the entry is still there.
void Builder::Impl::RememberBuilt(const PlannedLoad& load, const cache::Entry& entry, std::vector<WatchedFile> headers,
                                  uint64_t cache_changes) {
  if (!load.request_digest || cache.changes() != cache_changes) return;
  KnownHit hit{.result = ResultOf(*load.known, entry),
               .artifact = entry.artifact,
               .headers = std::make_shared<const std::vector<WatchedFile>>(std::move(headers)),
               .cache_changes = cache_changes};
  hit.result.set_cache_hit(true);
  known_loads.Add(*load.request_digest, {load.key(), load.known->toolchain, load.known->warnings, std::move(hit)});
}

void Builder::Impl::Finish(const PlannedLoad& load, const FlightPtr& flight, absl::StatusOr<v1::LoadResult> result) {
  if (!result.ok() && load.effort == Effort::kBuild) {
    CountFailure(load, result.status());
    const bool compiler_refuses = KindOf(result.status()) == v1::ErrorDetail::COMPILATION;
    const auto state = compiler_refuses ? remote::ClaimState::kFailed : remote::ClaimState::kLeft;
    if (upstream != nullptr) upstream->EndBuild(load.key(), state);
  }
  // In this order: a load that no longer finds the flight must find the entry.
  Forget(KeyOfFlight(load), flight);
  flight->Complete(std::move(result));
  EndWork();
}

void Builder::Impl::CountFailure(const PlannedLoad& load, const absl::Status& status) {
  const bool cancelled = KindOf(status) == v1::ErrorDetail::CANCELLED;
  cache.Count(cancelled ? cache::Total::kCancelled : cache::Total::kFailures);
  Log(LogLevel::kInfo, cancelled ? "build_cancelled" : "build_failed",
      {{"name", load.tag.name}, {"key", load.key().Hex()}, {"error", ToStd(status.message())}});
}

Builder::Builder(Env& env, BuilderOptions options, toolchain::ToolchainRegistry& toolchains, exec::Executor& executor,
                 cache::Cache& cache, exec::Executor* background, UpstreamCache* upstream)
    : impl_(std::make_unique<Impl>(env, std::move(options), toolchains, executor, cache, background, upstream)) {}

Builder::~Builder() { impl_->StopAndWait(); }

void Builder::Register(MetricsRegistry& registry) const {
  impl_->step_runner.Register(registry);
  impl_->step_cache.Register(registry);
  impl_->early_counts->Register(registry);
}

size_t Builder::LessonsLeft() const { return impl_->step_runner.LessonsLeft(); }

void Builder::ForgetSteps() { impl_->step_cache.RemoveAll(); }

absl::StatusOr<v1::LoadResult> Builder::Load(v1::LoadRequest request, UserId owner, LoadObserver& observer,
                                             CancellationPtr cancellation) {
  const Impl::Work work(*impl_);
  return impl_->Load(std::move(request), owner, observer, cancellation);
}

bool Builder::LookUp(v1::LoadRequest request, UserId owner, const DeliverHit& deliver, CancellationPtr cancellation) {
  const Impl::Work work(*impl_);
  return impl_->LookUp(std::move(request), owner, deliver, cancellation);
}

bool Builder::LookUpKnown(v1::LoadRequest& request, UserId owner, FileLook& look, const DeliverHit& deliver) {
  const Impl::Work work(*impl_);
  return impl_->LookUpKnown(request, owner, look, deliver);
}

}  // namespace kernix::build
