// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/build_turns.h"

#include <algorithm>
#include <utility>

#include "common/base/error.h"
#include "common/base/log.h"

namespace kernix::build {
namespace {

using remote::BuildClaim;
using remote::ClaimState;

constexpr Duration kFirstPause{50};
constexpr Duration kLongestPause{1'000};

// How often a node writes its claim if that gets lost.
constexpr int kMostClaims = 3;

// How many times longer than this node has needed to write its claim it waits for others to write theirs.
constexpr int kPatience = 4;

// About half as long again as the one before.
void NextPause(BuildTurns::Wait& wait) {
  wait.pause = Jittered(std::clamp(wait.pause * 2, kFirstPause, kLongestPause));
}

// The upstream does not answer.
bool BuildAnyway(const Digest& key, const absl::Status& error) {
  Log(LogLevel::kWarning, "build_not_claimed", {{"key", ShortKey(key)}, {"error", error.message()}});
  return true;
}

}  // namespace

bool BuildTurns::MayBuild(const Digest& key, Wait& wait, const remote::Limits& limits) {
  if (std::exchange(wait.settles, false)) return HasStayed(key, wait, limits);
  if (WaitsForTooLong(wait)) return true;
  const absl::StatusOr<std::optional<BuildClaim>> claim = ReadOrRecall(key, wait, limits);
  if (!claim.ok()) return BuildAnyway(key, claim.status());
  // Later nodes try again: what was wrong may have been the node.
  if (*claim && (*claim)->state == ClaimState::kFailed && wait.seen) return true;
  if (*claim && MustWait(**claim, wait)) {
    NextPause(wait);
    return false;
  }
  return Claim(key, wait, limits);
}

bool BuildTurns::OtherBuilds(const Digest& key, Wait& wait, const remote::Limits& limits) {
  if (WaitsForTooLong(wait)) return false;
  const absl::StatusOr<std::optional<BuildClaim>> claim = ReadOrRecall(key, wait, limits);
  if (!claim.ok() || !*claim || !MustWait(**claim, wait)) return false;
  NextPause(wait);
  return true;
}

// The cache may lose a claim. The node that builds says so again, or has gone.
absl::StatusOr<std::optional<BuildClaim>> BuildTurns::ReadOrRecall(const Digest& key, const Wait& wait,
                                                                   const remote::Limits& limits) {
  absl::StatusOr<std::optional<BuildClaim>> claim = claims_.Read(key, limits);
  const bool is_lost = claim.ok() && !*claim && wait.seen && wait.seen->state == ClaimState::kBuilding;
  return is_lost ? wait.seen : claim;
}

// Whatever claims say: a hostile writer could say something new each time, or undo this node's own claim.
bool BuildTurns::WaitsForTooLong(const Wait& wait) const { return wait.seen && env_.Now() - wait.begun > kLongestWait; }

// A result written just before the claim said so may have come just after the query for it.
bool BuildTurns::MustWait(const BuildClaim& claim, Wait& wait) {
  const bool is_news = wait.seen != claim;
  if (is_news) {
    if (!wait.seen) wait.begun = env_.Now();
    wait.seen = claim;
    wait.since = env_.Now();
  }
  if (claim.state == ClaimState::kBuilt) return is_news;
  if (claim.state != ClaimState::kBuilding) return false;
  if (is_news || env_.Now() - wait.since < kSilence) return true;
  turns_["abandoned"].Add();
  return false;
}

bool BuildTurns::Claim(const Digest& key, Wait& wait, const remote::Limits& limits) {
  const MonotonicTime begin = env_.Now();
  const absl::Status written = claims_.Write(key, 0, ClaimState::kBuilding, limits);
  if (!written.ok()) return BuildAnyway(key, written);
  const auto took = std::chrono::duration_cast<Duration>(env_.Now() - begin);
  wait.pause = std::clamp(took * kPatience, kSettle, kLongestSettle);
  wait.settles = true;
  ++wait.claims;
  return false;
}

// A claim that cannot be read is treated as one that has stayed.
bool BuildTurns::HasStayed(const Digest& key, Wait& wait, const remote::Limits& limits) {
  const absl::StatusOr<std::optional<BuildClaim>> claim = claims_.Read(key, limits);
  if (claim.ok() && *claim && (*claim)->node != claims_.node()) {
    turns_["lost"].Add();
    wait.pause = Duration(0);
    wait.claims = 0;
    MustWait(**claim, wait);
    NextPause(wait);
    return false;
  }
  const bool is_lost = claim.ok() && !*claim;
  if (is_lost && wait.claims < kMostClaims) return Claim(key, wait, limits);
  wait.claims = 0;
  turns_["own"].Add();
  Begin(key);
  return true;
}

void BuildTurns::Begin(const Digest& key) {
  {
    const MutexLock lock(mutex_);
    own_turns_[key] = 0;
  }
  work_.PushAt(env_.Now() + kBeat, [this, key] { Beat(key); });
}

void BuildTurns::Beat(const Digest& key) {
  uint64_t beat = 0;
  {
    const MutexLock lock(mutex_);
    const auto turn = own_turns_.find(key);
    if (turn == own_turns_.end()) return;
    beat = ++turn->second;
  }
  const absl::Status status = claims_.Write(key, beat, ClaimState::kBuilding, &stopped_);
  if (!status.ok()) Log(LogLevel::kDebug, "claim_not_renewed", {{"key", ShortKey(key)}, {"error", status.message()}});
  work_.PushAt(env_.Now() + kBeat, [this, key] { Beat(key); });
}

void BuildTurns::End(const Digest& key, ClaimState state) {
  {
    const MutexLock lock(mutex_);
    if (own_turns_.erase(key) == 0) return;
  }
  ++ends_;
  work_.Push([this, key, state] {
    claims_.Write(key, 0, state, &stopped_).IgnoreError();
    --ends_;
  });
}

}  // namespace kernix::build
