// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/sharing.h"

#include <random>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/base/error.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "daemon/remote/placing_executor.h"
#include "daemon/remote/remote_executor.h"

namespace kernix::server {
namespace {

absl::StatusOr<remote::SharingTrust> TrustOf(Env& env, const ServerOptions& options) {
  const UpstreamSettings& settings = options.upstream;
  remote::SharingTrust trust;
  const std::vector<std::string> keys = absl::StrSplit(settings.trusted_keys, ',', absl::SkipWhitespace());
  for (const std::string& key : keys) {
    KERNIX_RETURN_IF_ERROR(
        Annotate(trust.trusted.Add(key), StrCat(options.OriginOf("upstream.trusted_keys"), "upstream.trusted_keys")));
  }
  if (settings.signing_key_file.empty()) return trust;
  absl::StatusOr<SigningKey> key = SigningKey::Read(env, settings.signing_key_file);
  KERNIX_RETURN_IF_ERROR(
      Annotate(key.status(), StrCat(options.OriginOf("upstream.signing_key_file"), "upstream.signing_key_file")));
  trust.signs_with = *std::move(key);
  return trust;
}

absl::Status CheckShippedFolders(Env& env, const ServerOptions& options) {
  for (const std::string& folder : options.upstream.shipped_folders) {
    const absl::StatusOr<FileInfo> info = env.Stat(folder);
    if (info.ok() && info->type == FileType::kDirectory) continue;
    return MakeError(v1::ErrorDetail::INVALID_REQUEST, StrCat(options.OriginOf("upstream.shipped_folders"),
                                                              "upstream.shipped_folders: ", folder, " is no folder"));
  }
  return absl::OkStatus();
}

build::UpstreamCacheOptions CacheOptionsOf(const ServerOptions& options) {
  build::UpstreamCacheOptions result;
  result.address = options.upstream.address;
  result.read = options.upstream.read;
  result.write = options.upstream.write;
  result.build_once = options.upstream.build_once;
  if (options.max_output_bytes > 0) result.max_result_bytes = kFilesOfALoad * options.max_output_bytes;
  return result;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Sharing>> Sharing::Open(Env& env, const ServerOptions& options) {
  if (options.upstream.address.empty()) return nullptr;
  KERNIX_ASSIGN_OR_RETURN(remote::SharingTrust trust, TrustOf(env, options));
  KERNIX_RETURN_IF_ERROR(CheckShippedFolders(env, options));
  KERNIX_ASSIGN_OR_RETURN(auto upstream, remote::Upstream::Open(env, options.upstream));
  return std::unique_ptr<Sharing>(new Sharing(env, std::move(upstream), std::move(trust), CacheOptionsOf(options)));
}

// Containers of several machines may have the same names and process numbers.
std::string Sharing::NameOfThisProcess() {
  std::random_device random;
  return absl::StrFormat("%08x%08x%08x%08x", random(), random(), random(), random());
}

void Sharing::Start(Env& env, toolchain::FileDigests& digests) {
  cache_.emplace(env, digests, results_, claims_, options_);
  if (!options_.write || believes_itself_) return;
  Log(LogLevel::kWarning, "own_results_not_believed",
      {{"advice",
        "upstream.trusted_keys lacks the key of upstream.signing_key_file: nodes with these settings ignore "
        "what this one writes"}});
}

void Sharing::AskEngine() {
  try {
    question_ = std::thread([this] {
      const absl::Status answer = upstream_->Facts(&stopping_).status();
      if (answer.ok() || stopping_.cancelled()) return;
      Log(LogLevel::kWarning, "upstream_does_not_answer",
          {{"address", upstream_->address()}, {"message", answer.message()}});
    });
  } catch (const std::system_error&) {  // the first load asks
  }
}

Sharing::~Sharing() {
  stopping_.Cancel();
  if (question_.joinable()) question_.join();
}

std::unique_ptr<exec::Executor> Sharing::Place(Env& env, const ServerOptions& options,
                                               std::unique_ptr<exec::Executor> local, MetricsRegistry& registry) {
  const UpstreamSettings& settings = options.upstream;
  const remote::PlacingOptions placing = {settings.Placements(), settings.overflow_after};
  if (placing.placements.AllLocal()) return local;
  auto workers = remote::MakeRemoteExecutor(env, *upstream_,
                                            {.max_jobs = settings.jobs,
                                             .queue_limit = options.QueueTimeout(),
                                             .platform = settings.platform,
                                             .shipped_folders = settings.shipped_folders,
                                             .max_output_bytes = options.max_output_bytes,
                                             .run_anew = !settings.trusted_keys.empty(),
                                             .pause = &pause_});
  auto placed = std::make_unique<remote::PlacingExecutor>(std::move(local), std::move(workers), placing, pause_);
  placed->Register(registry);
  return placed;
}

void Sharing::Register(MetricsRegistry& registry) const {
  upstream_->Register(registry);
  results_.Register(registry);
  cache_->Register(registry);
}

}  // namespace kernix::server
