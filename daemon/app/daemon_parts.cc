// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/daemon_parts.h"

#include <utility>

#include "common/base/log.h"
#include "common/base/strings.h"

namespace kernix::server {
namespace {

// Far above the needs of compilers (the most that we have seen is 1.2 GiB and 10 processes).
constexpr uint64_t kSharedMemory = 8ull << 30;
constexpr int kSharedProcesses = 256;

exec::LocalExecutorOptions ExecutorOptions(const ServerOptions& options, const cache::Cache& cache) {
  return {
      .run = {.scratch_directory = cache.scratch_directory(),
              .max_output_bytes = options.max_output_bytes,
              .max_process_memory_bytes = options.max_process_memory_bytes.value_or(options.shared ? kSharedMemory : 0),
              .max_processes = options.max_processes_per_job.value_or(options.shared ? kSharedProcesses : 0)},
      .max_jobs = options.jobs,
      .memory_budget_bytes = options.memory_budget_bytes};
}

// For what nobody waits for: beside the pool, and with what that leaves of the processors.
exec::LocalExecutorOptions BackgroundOptions(const ServerOptions& options, const cache::Cache& cache) {
  exec::LocalExecutorOptions background = ExecutorOptions(options, cache);
  background.max_jobs = 1;
  background.run.niceness = 19;
  return background;
}

std::unique_ptr<exec::Executor> MakeExecutor(Env& env, const ServerOptions& options, const cache::Cache& cache,
                                             Sharing* sharing, MetricsRegistry& registry) {
  std::unique_ptr<exec::Executor> local = exec::MakeLocalExecutor(env, ExecutorOptions(options, cache));
  return sharing == nullptr ? std::move(local) : sharing->Place(env, options, std::move(local), registry);
}

// They are named by what the platform says of them, and by the engine's instance.
build::WorkerTools WorkersOf(const UpstreamSettings& settings) {
  const exec::Placements placements = settings.Placements();
  if (placements.AllLocal() || settings.same_tools) return {};
  build::WorkerTools workers = {.name = StrCat("instance=", settings.instance),
                                .only_device_compiles = placements.host_compiles == exec::Placement::kLocal &&
                                                        placements.links == exec::Placement::kLocal,
                                .shipped_folders = settings.shipped_folders};
  for (const auto& [name, value] : settings.platform) StrAppend(&workers.name, "\n", name, "=", value);
  return workers;
}

build::BuilderOptions BuilderOptions(const ServerOptions& options) {
  build::BuilderOptions result;
  result.flag_policy = options.shared ? toolchain::FlagPolicy::kShared : toolchain::FlagPolicy::kPerUser;
  result.limits.max_source_bytes = options.max_request_bytes;
  result.step_timeout = options.job_timeout;
  result.disabled = options.disabled_shortcuts;
  result.workers = WorkersOf(options.upstream);
  result.builds_described = options.upstream.WorkersRunAll();
  result.max_made_bytes = kFilesOfALoad * options.max_output_bytes;
  result.max_held_bytes_per_user = kLargestLoadsOfAUser * result.max_made_bytes;
  return result;
}

std::unique_ptr<Sharing> Started(std::unique_ptr<Sharing> sharing, Env& env, toolchain::FileDigests& digests) {
  if (sharing != nullptr) sharing->Start(env, digests);
  return sharing;
}

}  // namespace

DaemonParts::DaemonParts(Env& env, const ServerOptions& options, toolchain::ToolchainRegistry& registry,
                         std::unique_ptr<cache::Cache> cache, std::unique_ptr<Sharing> sharing, StopRequest& stop,
                         std::function<absl::StatusOr<v1::ReloadResponse>()> reload)
    : cache_(std::move(cache)),
      registry_(registry),
      sharing_(Started(std::move(sharing), env, registry_.digests())),
      executor_(MakeExecutor(env, options, *cache_, sharing_.get(), metrics_)),
      background_(exec::MakeLocalExecutor(env, BackgroundOptions(options, *cache_))),
      builder_(env, BuilderOptions(options), registry_, *executor_, *cache_, background_.get(),
               sharing_ ? &sharing_->cache() : nullptr),
      backend_{.env = env,
               .options = {.shared = options.shared,
                           .max_request_bytes = options.max_request_bytes,
                           .max_fetches_per_user = options.BoundsPerUser().fetches,
                           .upload_timeout = options.upload_timeout,
                           .reads_upstream = options.upstream.read,
                           .writes_upstream = options.upstream.write,
                           .placements = options.upstream.Placements(),
                           .inherited = options.inherited,
                           .sandbox = options.found_sandbox},
               .cache = *cache_,
               .executor = *executor_,
               .builder = builder_,
               .upstream = sharing_ ? &sharing_->upstream() : nullptr,
               .pause = sharing_ ? &sharing_->pause() : nullptr,
               .compilers = registry_,
               .toolchains{env, options.shared, options.toolchains, !options.toolchain_description.empty()},
               .loads{env, "loads", "max_loads_per_user", options.BoundsPerUser().loads},
               .fetches{env, "fetches of artifacts", "max_fetches_per_user", options.BoundsPerUser().fetches},
               .requests = exec::ByteQuota(options.BoundsPerUser().request_bytes),
               .uploads = exec::ByteQuota(options.BoundsPerUser().request_bytes),
               .registry = metrics_,
               .started_at = env.Now(),
               .request_stop = [&stop](std::string_view reason, Duration drain) { stop.Set(reason, drain); },
               .reload = std::move(reload)} {
  cache_->Register(metrics_);
  builder_.Register(metrics_);
  if (sharing_) sharing_->Register(metrics_);
  backend_.metrics.Register(metrics_);
  metrics_.AddGauge("kernix_sandbox", "1, labelled with what keeps compilers from the machine.", [] { return 1; },
                    {{"rung", std::string(exec::RungName(options.found_sandbox.rung))}});
  const absl::StatusOr<std::vector<KnownFile>> files = cache_->LoadKnownFiles();
  if (files.ok()) {
    registry_.digests().Remember(*files);
  } else {
    Log(LogLevel::kWarning, "known_files_unreadable", {{"error", files.status().message()}});
  }
  if (!options.shared) registry_.RememberIn(cache_->toolchain_directories());
  if (sharing_) sharing_->AskEngine();
}

void DaemonParts::Flush() {
  const std::vector<KnownFile> news = registry_.digests().TakeNews();
  absl::Status status = cache_->SaveKnownFiles(news);
  if (!status.ok()) registry_.digests().PutBackNews(news);
  status.Update(cache_->Flush());
  cache_->CopyIndexIfDue();
  if (!status.ok()) Log(LogLevel::kWarning, "flush_failed", {{"error", status.message()}});
}

void DaemonParts::Apply(const ServerOptions& options) {
  cache_->SetLimits({.bytes = options.cache_limit_bytes, .bytes_per_user = options.cache_limit_per_user});
  backend_.loads.SetMost(options.BoundsPerUser().loads);
  backend_.fetches.SetMost(options.BoundsPerUser().fetches);
  backend_.toolchains.Replace(options.toolchains);
  CheckToolchains(options);
}

void DaemonParts::CheckToolchains(const ServerOptions& options) {
  for (const RegisteredToolchain& toolchain : options.toolchains) {
    CheckToolchain(toolchain.name, toolchain.paths, toolchain::LanguageOf(toolchain.paths));
  }
  if (!options.toolchain_description.empty()) CheckToolchain(options.toolchain_description, {}, v1::LANGUAGE_CPP);
}

void DaemonParts::CheckToolchain(const std::string& name, const v1::ToolchainPaths& paths, v1::Language language) {
  const absl::StatusOr<toolchain::ToolchainPtr> found = registry_.Resolve(paths, language);
  if (!found.ok()) {
    return Log(LogLevel::kError, "toolchain_unusable", {{"toolchain", name}, {"error", found.status().message()}});
  }
  const toolchain::Toolchain& tools = **found;
  Log(LogLevel::kInfo, "toolchain",
      {{"toolchain", name},
       {"host_compiler", tools.host.path},
       {"version", tools.host.version},
       {"cuda", tools.cuda ? tools.cuda->version : "none"},
       {"identity", tools.identity.Hex().substr(0, 16)}});
}

}  // namespace kernix::server
