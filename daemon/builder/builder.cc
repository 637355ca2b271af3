// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/builder.h"

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/base/exceptions.h"
#include "common/base/log.h"
#include "common/base/request_checks.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/wire/quick_lookup.h"
#include "daemon/builder/build.h"
#include "daemon/builder/failure.h"
#include "daemon/builder/miss_reason.h"
#include "daemon/builder/toolchain_headers.h"
#include "daemon/builder/trace_recorder.h"
#include "daemon/builder/upstream_cache.h"
#include "daemon/plan/load_key.h"
#include "daemon/plan/plan.h"
#include "daemon/request/request.h"
#include "daemon/toolchain/description.h"

namespace kernix::build {
namespace {

// Longer than any user's loads can take.
constexpr std::chrono::hours kTurnComes{24 * 365};

v1::Output AnnounceBuild(const std::string& name, const std::string& reason) {
  v1::Output output;
  output.set_text(StrCat("kernixd: building ", name, ": ", reason, "\n"));
  return output;
}

}  // namespace

Builder::~Builder() { flights.StopAndWait(); }

void Builder::Register(MetricsRegistry& registry) const {
  step_runner.Register(registry);
  step_cache.Register(registry);
}

size_t Builder::LessonsLeft() const { return step_runner.LessonsLeft(); }

void Builder::ForgetSteps() { step_cache.RemoveAll(); }

std::unique_ptr<exec::ByteQuota::Share> Builder::TurnToPlan(UserId user) {
  // What is in the cache is given to a load that is cancelled, too.
  return planning_.Await(user, 1, env.Now() + kTurnComes, /*cancellation=*/nullptr);
}

std::unique_ptr<exec::ByteQuota::Share> Builder::SlotForBuild(const PlannedLoad& load,
                                                              const CancellationPtr& cancellation) {
  exec::ByteQuota& quota = load.asker.is_of_batch ? batch_builds_ : builds_;
  // What is in the cache is given to a load that is cancelled, too.
  if (auto slot = quota.Take(load.tag.owner, 1)) return slot;
  return quota.Await(load.tag.owner, 1, env.Now() + kTurnComes, cancellation.get());
}

absl::StatusOr<std::shared_ptr<PlannedLoad>> Builder::Prepare(const v1::LoadRequest& request, UserId owner,
                                                              toolchain::ToolchainPtr toolchain) {
  const bool is_remembered = toolchain->described != nullptr && toolchain->described->of_store;
  absl::StatusOr<std::shared_ptr<PlannedLoad>> load = PrepareFor(request, owner, std::move(toolchain));
  if (!is_remembered || request.force_rebuild() || (load.ok() && Find(**load))) return load;
  for (toolchain::ToolchainPtr& other : toolchains.Remembered(request.language())) {
    absl::StatusOr<std::shared_ptr<PlannedLoad>> again = PrepareFor(request, owner, std::move(other));
    if (again.ok() && Find(**again)) return again;
  }
  return load;
}

absl::StatusOr<std::shared_ptr<PlannedLoad>> Builder::PrepareFor(const v1::LoadRequest& request, UserId owner,
                                                                 toolchain::ToolchainPtr toolchain) {
  auto load = std::make_shared<PlannedLoad>();
  KERNIX_ASSIGN_OR_RETURN(load->request,
                          ValidateRequest(env, request, std::move(toolchain), options.flag_policy, options.limits));
  load->tag = {request.name(), owner};
  load->force = request.force_rebuild();
  load->verbose = request.verbose();
  load->asker = {owner, request.batch(), request.max_parallel_jobs()};
  load->frozen = request.frozen();
  const bool can_build = CanBuildWith(*load->request.toolchain);
  if (!can_build && load->force) return NothingToBuildWith(*load->request.toolchain);
  if (request.only_cached() || !can_build) load->effort = Effort::kWait;
  if (load->effort != Effort::kBuild && !load->request.refusal.ok()) return load->request.refusal;
  KERNIX_ASSIGN_OR_RETURN(load->plan, MakePlan(load->request, plan_limits()));
  for (Unit& unit : load->request.units) unit.functions = {};  // they are in the unit's text, and among the request's
  load->key = LoadKey(load->request, load->plan);
  load->warnings = LoadWarnings(load->request);
  return load;
}

absl::StatusOr<v1::LoadResult> Builder::Load(v1::LoadRequest request, UserId owner, LoadObserver& observer,
                                             CancellationPtr cancellation) {
  const Flights::Work work(flights);
  const auto trace = std::make_shared<TraceRecorder>(env);
  KERNIX_ASSIGN_OR_RETURN(toolchain::ToolchainPtr toolchain,
                          toolchains.Resolve(request.toolchain(), request.language()));
  trace->Lap("identify tools");
  std::unique_ptr<exec::ByteQuota::Share> turn = TurnToPlan(owner);
  KERNIX_ASSIGN_OR_RETURN(const std::shared_ptr<PlannedLoad> load, Prepare(request, owner, std::move(toolchain)));
  load->trace = trace;
  trace->Lap("plan");
  if (!load->force && !DependsOnFiles(load->request)) {
    load->request_digest = DigestOfLookup(LookupOf(std::move(request)));
  }
  v1::LoadRequest().Swap(&request);  // frees its texts, which may be large; the load has its own copy
  turn.reset();
  if (std::optional<v1::LoadResult> hit = FindAndCount(*load)) return *std::move(hit);
  const Miss miss = ExplainMiss(cache, toolchains.digests(),
                                *load);  // before a build replaces the entry that the reason is read from
  const std::string& reason = miss.reason;
  if (load->verbose && load->effort == Effort::kBuild) observer.OnOutput(AnnounceBuild(load->tag.name, reason));
  trace->Lap("look up");
  const auto slot = SlotForBuild(*load, cancellation);
  if (slot == nullptr) return MakeError(v1::ErrorDetail::CANCELLED, "the load was cancelled");
  bool mine = false;
  KERNIX_ASSIGN_OR_RETURN(const FlightPtr flight, flights.JoinOrMake(*load, mine));
  if (!mine) {
    cache.Count(cache::Total::kMisses);
    cache.Count(cache::Total::kJoined);
    MoveInQueue(*flight);
  }
  absl::StatusOr<v1::LoadResult> result = Fly(load, flight, observer, cancellation);
  // An asker's earlier loads are for nobody else.
  if (!result.ok() && KindOf(result.status()) == v1::ErrorDetail::NOT_CACHED) {
    const toolchain::Toolchain& tools = *load->request.toolchain;
    if (!CanBuildWith(tools)) return NotTaken(load->tag.name, tools, upstream);
    return NotCached(load->tag.name, miss, load->frozen);
  }
  // The builder stores the entry under the tag of one asker, which may not be this one.
  if (!result.ok()) return result;
  if (!result->cache_hit()) result->set_miss_reason(reason);
  result->set_joined(!mine && !result->cache_hit());
  result->mutable_warning()->Assign(load->warnings.begin(), load->warnings.end());
  KERNIX_RETURN_IF_ERROR(GiveOut(*load, *result));
  return result;
}

absl::StatusOr<v1::LoadResult> Builder::Fly(const std::shared_ptr<PlannedLoad>& load, const FlightPtr& flight,
                                            LoadObserver& observer, const CancellationPtr& cancellation) {
  const auto fetch = [&](const std::vector<Digest>& headers) {
    return header_cache_.FindOrFetch(load->tag.owner, headers, observer);
  };
  const auto start = [&](HeaderContents contents) { StartBuild(load, flight, std::move(contents)); };
  absl::StatusOr<v1::LoadResult> result =
      flight->Await(load->asker, observer, load->verbose, cancellation, fetch, start);
  if (flight->closed()) {
    flights.Forget(flight);
  } else {
    MoveInQueue(*flight);
  }
  return result;
}

void Builder::MoveInQueue(const Flight& flight) {
  IgnoreExceptions("not moved", [&] { executor.AskersChanged(*flight.askers()); });
}

bool Builder::LookUp(const v1::LoadRequest& request, UserId owner, const DeliverHit& deliver) {
  const Flights::Work work(flights);
  // Load() finds out what unknown tools are.
  if (request.force_rebuild() || !toolchains.HasFound(request.toolchain(), request.language())) return false;
  const auto toolchain = toolchains.Resolve(request.toolchain(), request.language());
  if (!toolchain.ok()) return false;
  auto turn = TurnToPlan(owner);
  const absl::StatusOr<std::shared_ptr<PlannedLoad>> planned = Prepare(request, owner, *toolchain);
  turn.reset();
  if (!planned.ok() || !(*planned)->request.refusal.ok()) return false;
  const PlannedLoad& load = **planned;
  std::optional<KnownHit> hit = Find(load);
  if (!hit || !deliver(hit->result)) return false;
  if (!DependsOnFiles(load.request)) known_loads.Add(DigestOfLookup(LookupOf(request)), owner, *std::move(hit));
  cache.Touch(load.key, load.tag);
  return true;
}

absl::Status Builder::GiveOut(const PlannedLoad& load, const v1::LoadResult& result) {
  cache.AddTag(load.key, load.tag);
  KERNIX_ASSIGN_OR_RETURN(const Digest artifact, Digest::FromRaw(result.artifact_digest()));
  cache.Lend(artifact, load.tag.owner);
  return absl::OkStatus();
}

bool Builder::LookUpKnown(const v1::LookupRequest& lookup, UserId owner, FileCheck& check, const DeliverHit& deliver) {
  const Flights::Work work(flights);
  if (!CheckModuleName(lookup.name()).ok()) return false;
  const toolchain::ToolchainPtr toolchain = toolchains.FindKnown(lookup.toolchain(), lookup.language(), check);
  if (toolchain == nullptr) return false;
  const KnownHitPtr hit = known_loads.Find(DigestOfLookup(lookup), toolchain);
  if (hit == nullptr || !check.Unchanged(hit->headers)) return false;
  if (!cache.LendAgain(hit->key, hit->artifact, hit->result.artifact_size(), hit->cache_changes, owner)) return false;
  if (!deliver(hit->result)) return false;
  cache.Touch(hit->key, {lookup.name(), owner});
  return true;
}

void Builder::StartBuild(const std::shared_ptr<PlannedLoad>& load, const FlightPtr& flight, HeaderContents contents) {
  BuilderParts& parts = *this;
  flights.BeginWork();
  const absl::Status started = CatchExceptions(kLoadNotHandled, [&] {
    std::thread([this, build = std::make_unique<Build>(parts, load, flight), contents = std::move(contents)]() mutable {
      build->Run(std::move(contents));
      build.reset();  // what it holds may need what is destroyed with the builder
      flights.EndWork();
    }).detach();
    return absl::OkStatus();
  });
  if (started.ok()) return;
  Build(parts, load, flight).End(started);
  flights.EndWork();
}

std::optional<KnownHit> BuilderParts::Find(const PlannedLoad& load) {
  const uint64_t cache_changes = cache.changes(load.key);  // before the entry is read
  const absl::StatusOr<std::optional<cache::Entry>> entry = cache.Find(load.key);
  if (!entry.ok()) {
    // The load can still be served by a build. Whether the store accepts its result will show later.
    Log(LogLevel::kWarning, "cache_lookup_failed", {{"error", entry.status().ToString()}});
    return std::nullopt;
  }
  auto headers = std::make_shared<std::vector<WatchedFile>>();
  if (!entry->has_value() ||
      ChangedToolchainHeader(toolchains.digests(), *load.request.toolchain, (*entry)->toolchain_headers, *headers)) {
    return std::nullopt;
  }
  cache.Lend((*entry)->artifact, load.tag.owner);
  KnownHit hit{.key = load.key,
               .toolchain = load.request.toolchain,
               .result = ResultOf(load, **entry),
               .artifact = (*entry)->artifact,
               .headers = std::move(headers),
               .cache_changes = cache_changes};
  hit.result.set_cache_hit(true);
  return hit;
}

std::optional<v1::LoadResult> BuilderParts::FindAndCount(const PlannedLoad& load) {
  if (load.force) return std::nullopt;
  std::optional<KnownHit> hit = Find(load);
  if (!hit) return std::nullopt;
  cache.Touch(load.key, load.tag);
  return std::move(hit->result);
}

v1::LoadResult BuilderParts::ResultOf(const PlannedLoad& load, const cache::Entry& entry) const {
  v1::LoadResult result;
  result.set_key(load.key.Raw());
  result.set_artifact_digest(entry.artifact.Raw());
  result.set_artifact_size(entry.size);
  result.set_artifact_path(cache.BlobPath(entry.artifact));
  *result.mutable_function() = entry.detail.function();
  *result.mutable_required_symbol_versions() = entry.detail.required_symbol_version();
  for (const v1::LoadWarning& warning : load.warnings) *result.add_warning() = warning;
  for (std::string& path : OtherFiles(*load.request.toolchain, entry.toolchain_headers)) {
    result.add_other_file(std::move(path));
  }
  return result;
}

}  // namespace kernix::build
