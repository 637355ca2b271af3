// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/upstream_cache.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "common/base/error.h"
#include "common/base/exceptions.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "daemon/plan/tool_paths.h"
#include "daemon/toolchain/description.h"

namespace kernix::build {
namespace {

constexpr int kWritesAtOnce = 2;
// Whom the quota of questions knows, and longer than any turn takes.
constexpr UserId kAnybody{};
constexpr std::chrono::hours kTurnComes{24 * 365};

constexpr Duration kFirstPause{1'000};

// While it waits at the end: how often it checks whether the upstream answers.
constexpr Duration kPollPeriod{100};

uint64_t BytesOf(const remote::SharedResult& result) {
  uint64_t bytes = 0;
  for (const auto& [name, content] : result.files) bytes += content->size();
  return bytes;
}

// Whether a portable name leads into a folder of the toolchain. Other nodes must learn nothing of other files of this
// one, and name none of them.
bool IsOfToolchain(const std::string& name) { return !name.starts_with('/') && NormalizePath(name) == name; }

// Nothing if one of them is not certain, or is no header of the toolchain.
std::optional<std::vector<StatedHeader>> Shared(std::vector<StatedHeader> headers) {
  for (const StatedHeader& header : headers) {
    if (header.digest == Digest() || !IsOfToolchain(header.name)) return std::nullopt;
  }
  std::sort(headers.begin(), headers.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return headers;
}

remote::Limits LimitsOf(const UpstreamCache::Wanted& wanted, const UpstreamBudget::Query& query) {
  return {wanted.cancellation.get(), query.deadline()};
}

}  // namespace

UpstreamCache::UpstreamCache(Env& env, toolchain::FileDigests& digests, remote::SharedResults& results,
                             remote::BuildClaims& claims, UpstreamCacheOptions options)
    : env_(env),
      digests_(digests),
      results_(results),
      options_(std::move(options)),
      claims_(options_.build_once ? 1 : 0),
      writes_(options_.write ? kWritesAtOnce : 0) {
  if (options_.build_once && options_.read) turns_.emplace(env, claims, claims_, stopped_);
}

UpstreamCache::~UpstreamCache() {
  const MonotonicTime deadline = env_.Now() + kLastWrites;
  {
    const MutexLock lock(mutex_);
    while ((waiting_ > 0 || (turns_ && turns_->HasNews())) && results_.IsAnswered() && env_.Now() < deadline) {
      changed_.WaitUntil(mutex_, std::min(deadline, env_.Now() + kPollPeriod));
    }
    stopping_ = true;
    changed_.NotifyAll();
    if (waiting_ > 0) Log(LogLevel::kWarning, "upstream_writes_lost", {{"results", waiting_}});
  }
  stopped_.Cancel();
}

std::unique_ptr<exec::ByteQuota::Share> UpstreamCache::TurnToAsk(const Wanted& wanted) {
  return questions_.Await(kAnybody, 1, env_.Now() + kTurnComes, wanted.cancellation.get());
}

std::optional<remote::SharedResult> UpstreamCache::Find(Wanted wanted) {
  const bool may_wait = wanted.effort == Effort::kWait || (wanted.effort == Effort::kBuild && options_.write);
  if (turns_ && may_wait) return Await(std::move(wanted));
  const bool is_spent = wanted.budget != nullptr && wanted.budget->IsSpent();
  if (!options_.read || is_spent) return std::nullopt;
  if (wanted.budget == nullptr) wanted.budget = NewBudget();
  const auto turn = TurnToAsk(wanted);
  const UpstreamBudget::Query query(*wanted.budget);
  return FindNow(wanted, query);
}

std::optional<remote::SharedResult> UpstreamCache::Await(Wanted wanted) {
  const bool may_build = wanted.effort == Effort::kBuild;
  if (wanted.budget == nullptr) wanted.budget = NewBudget();
  if (wanted.budget->IsSpent()) return std::nullopt;
  BuildTurns::Wait wait;
  while (true) {
    {
      const auto turn = TurnToAsk(wanted);
      const UpstreamBudget::Query query(*wanted.budget);
      const remote::Limits limits = LimitsOf(wanted, query);
      std::optional<remote::SharedResult> found;
      if (!wait.settles) found = FindNow(wanted, query);
      const bool is_over = found || limits.IsCancelled() || query.IsOver();
      if (is_over && !wait.settles) return found;
      const bool must_wait =
          may_build ? !turns_->MayBuild(wanted.key, wait, limits) : turns_->OtherBuilds(wanted.key, wait, limits);
      if (!must_wait) return found;
    }
    if (!wait.settles) wanted.budget->Renew();
    Pause(wait.pause, wanted.cancellation.get());
  }
}

void UpstreamCache::EndBuild(const Digest& key, remote::ClaimState state) {
  if (turns_) turns_->End(key, state);
}

std::optional<remote::SharedResult> UpstreamCache::FindNow(const Wanted& wanted, const UpstreamBudget::Query& query) {
  if (query.IsOver()) return std::nullopt;
  const toolchain::Toolchain& toolchain = *wanted.toolchain;
  const std::vector<NamedFolder> folders = ToolchainFolders(toolchain);
  const auto own_digest = [&](const std::string& name) -> std::optional<Digest> {
    const std::string path = IsOfToolchain(name) ? LocalPath(folders, name) : "";
    const absl::StatusOr<Digest> digest =
        path.empty() ? absl::NotFoundError(name) : toolchain::DigestOfPart(toolchain, digests_, path);
    return digest.ok() ? std::optional(*digest) : std::nullopt;
  };
  auto found = CatchExceptions("a result of the upstream could not be taken in", [&] {
    return results_.Find(wanted.key, own_digest, std::min(options_.max_result_bytes, wanted.room),
                         LimitsOf(wanted, query));
  });
  if (found.ok()) return *std::move(found);
  Log(LogLevel::kDebug, "upstream_not_asked", {{"key", ShortKey(wanted.key)}, {"error", found.status().message()}});
  return std::nullopt;
}

void UpstreamCache::Keep(const Digest& key, const std::vector<StatedHeader>& headers,
                         std::vector<std::pair<std::string, exec::Content>> files) {
  if (!options_.write) return;
  std::optional<std::vector<StatedHeader>> shared = Shared(headers);
  if (!shared) return EndBuild(key, remote::ClaimState::kFailed);
  auto result =
      std::make_shared<const remote::SharedResult>(remote::SharedResult{*std::move(shared), std::move(files)});
  const uint64_t bytes = BytesOf(*result);
  if (!Reserve(bytes)) {
    EndBuild(key, remote::ClaimState::kFailed);
    return lost_.Add();
  }
  writes_.Push([this, key, result, bytes] { Write(key, *result, bytes); });
}

bool UpstreamCache::Reserve(uint64_t bytes) {
  const MutexLock lock(mutex_);
  if (stopping_ || waiting_bytes_ + bytes > kMostWaitingBytes) return false;
  waiting_bytes_ += bytes;
  ++waiting_;
  return true;
}

void UpstreamCache::Write(const Digest& key, const remote::SharedResult& result, uint64_t bytes) {
  const bool written = TryToWrite(key, result);
  if (!written) lost_.Add();
  EndBuild(key, written ? remote::ClaimState::kBuilt : remote::ClaimState::kFailed);
  const MutexLock lock(mutex_);
  waiting_bytes_ -= bytes;
  --waiting_;
  changed_.NotifyAll();
}

bool UpstreamCache::TryToWrite(const Digest& key, const remote::SharedResult& result) {
  Duration pause = kFirstPause;
  for (int i = 1; i <= kMostTries; ++i) {
    if (i > 1 && !PauseWrites(std::exchange(pause, 2 * pause))) return false;
    const absl::Status status = CatchExceptions("a result could not be written to the upstream",
                                                [&] { return results_.Put(key, result, &stopped_); });
    if (status.ok()) return true;
    Log(LogLevel::kDebug, "upstream_not_written", {{"key", ShortKey(key)}, {"error", status.message()}});
    EndBuild(key, remote::ClaimState::kFailed);  // other nodes need not wait for the next try
    // The engine will say that again, unless it is about a token, which may be renewed.
    if (KindOf(status) == v1::ErrorDetail::INVALID_REQUEST && !absl::IsUnauthenticated(status)) return false;
  }
  return false;
}

bool UpstreamCache::PauseWrites(Duration pause) {
  const MonotonicTime until = env_.Now() + pause;
  const MutexLock lock(mutex_);
  while (!stopping_ && changed_.WaitUntil(mutex_, until)) {
  }
  return !stopping_;
}

void UpstreamCache::Register(MetricsRegistry& registry) const {
  if (turns_) turns_->Register(registry);
  registry.AddCounter("kernix_upstream_results_lost_total", "Results not written to the upstream, or not in time.",
                      lost_);
  registry.AddGauge("kernix_upstream_waiting_bytes", "Bytes of results waiting to be written to the upstream.", [this] {
    const MutexLock lock(mutex_);
    return static_cast<int64_t>(waiting_bytes_);
  });
}

}  // namespace kernix::build
