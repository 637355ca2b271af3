// SPDX-License-Identifier: Apache-2.0
//
// Lets one of several nodes build a key that all of them need at the same moment. The others wait for its result.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "common/base/cancellation.h"
#include "common/base/digest.h"
#include "common/base/metrics.h"
#include "common/base/mutex.h"
#include "common/os/env.h"
#include "daemon/builder/work_queue.h"
#include "daemon/remote/shared_results.h"

namespace kernix::build {

// An action cache has no locks: whoever writes last wins. So a node writes a claim, waits longer than another node
// needs between reading and writing, and reads the claim again. Two nodes may still build the same key; then both
// results are the same. A cache may lose claims (buildbox-casd drops an entry that is read while it is written): then
// waiting nodes go on waiting, for kSilence at most, and the claim's node writes it again. Claims are not signed:
// whoever may write to the cache can make a load wait, for kLongestWait at most. Thread-safe.
class BuildTurns {
 public:
  // How often a node says that it still builds.
  static constexpr Duration kBeat{2'000};
  // A node that is silent for this long has gone.
  static constexpr Duration kSilence{7'000};
  // The least and the longest time between a claim and reading it again.
  static constexpr Duration kSettle{20};
  static constexpr Duration kLongestSettle{2'000};
  // After this, a load builds in spite of other nodes' claims.
  static constexpr Duration kLongestWait{600'000};

  // The state of a load that waits for another node.
  struct Wait {
    std::optional<remote::BuildClaim> seen;
    MonotonicTime begun;   // when something was seen first
    MonotonicTime since;   // when that was seen first
    Duration pause{0};     // before the next query
    bool settles = false;  // this node has written a claim, and next checks whether it has stayed
    int claims = 0;        // how often it has written that
  };

  // All must outlive it. `work`, which must have one thread, renews the claims of this node's builds until `stopped`
  // fires.
  BuildTurns(Env& env, remote::BuildClaims& claims, WorkQueue& work, Cancellation& stopped)
      : env_(env), claims_(claims), work_(work), stopped_(stopped) {}

  // Whether this node should build `key`, which the upstream did not have a moment ago. It then must call End(). False:
  // ask for the result again after `wait.pause` (useless while `wait.settles`), and call again with the same `wait`.
  // While it settles, call even if nobody wants the result any more. If the upstream does not answer, the node builds.
  // Blocks for two calls of the upstream, until `limits` at most.
  bool MayBuild(const Digest& key, Wait& wait, const remote::Limits& limits);

  // For a node that builds nothing: whether another node builds `key`, which the upstream did not have a moment ago.
  // True: ask for the result again after `wait.pause`, and ask again with the same `wait`. Blocks for a call.
  bool OtherBuilds(const Digest& key, Wait& wait, const remote::Limits& limits);

  // The build of `key` has ended, and its result was written if `state` says so. Does nothing if this node has no turn.
  void End(const Digest& key, remote::ClaimState state);

  // Whether an end is still to be said.
  bool HasNews() const { return ends_ > 0; }

  void Register(MetricsRegistry& registry) const { turns_.Register(registry); }

 private:
  bool Claim(const Digest& key, Wait& wait, const remote::Limits& limits);
  bool HasStayed(const Digest& key, Wait& wait, const remote::Limits& limits);
  absl::StatusOr<std::optional<remote::BuildClaim>> ReadOrRecall(const Digest& key, const Wait& wait,
                                                                 const remote::Limits& limits);
  bool WaitsForTooLong(const Wait& wait) const;
  bool MustWait(const remote::BuildClaim& claim, Wait& wait);
  void Begin(const Digest& key);
  void Beat(const Digest& key);

  Env& env_;
  remote::BuildClaims& claims_;
  WorkQueue& work_;
  Cancellation& stopped_;
  std::atomic<int> ends_{0};  // that `work_` has not said yet
  CounterFamily turns_{
      "kernix_upstream_turns_total",
      "Claims of a key that several nodes need: this node's, lost to another node, or taken from a node that has gone.",
      "turn",
      {"own", "lost", "abandoned"}};
  Mutex mutex_;
  absl::flat_hash_map<Digest, uint64_t> own_turns_ ABSL_GUARDED_BY(mutex_);  // the last beat of each
};

}  // namespace kernix::build
