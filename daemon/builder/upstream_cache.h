// SPDX-License-Identifier: Apache-2.0
//
// The tier behind this host's caches: results that nodes share.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/cancellation.h"
#include "common/base/digest.h"
#include "common/base/metrics.h"
#include "common/base/mutex.h"
#include "common/os/env.h"
#include "daemon/builder/build_turns.h"
#include "daemon/builder/work_queue.h"
#include "daemon/cache/entry.h"
#include "daemon/exec/byte_quota.h"
#include "daemon/remote/shared_results.h"
#include "daemon/toolchain/toolchain.h"

namespace kernix::build {

struct UpstreamCacheOptions {
  std::string address;  // for people
  bool read = true;
  bool write = false;
  // Lets one of several nodes build a key that all need at the same moment. A node that does not write claims nothing,
  // and so waits for nobody with Effort::kBuild.
  bool build_once = false;
  uint64_t max_result_bytes = UINT64_MAX;  // larger results of others are not taken, whatever the room
};

// One bound for all that a load waits for while the upstream is asked: for its artifact, for a claim, for each step.
// Thread-safe. `env` must outlive it.
class UpstreamBudget {
 public:
  UpstreamBudget(Env& env, Duration total) : env_(env), total_(total), left_(total) {}

  // The time of one query. Concurrent queries spend it once.
  class Query {
   public:
    explicit Query(UpstreamBudget& budget) : budget_(budget), deadline_(budget.Begin()) {}
    ~Query() { budget_.End(); }
    Query(const Query&) = delete;
    Query& operator=(const Query&) = delete;

    MonotonicTime deadline() const { return deadline_; }
    // Too little time is left to ask anything.
    bool IsOver() const { return budget_.env_.Now() > deadline_ - kLeast; }

   private:
    UpstreamBudget& budget_;
    const MonotonicTime deadline_;
  };

  // Too little is left to ask anything.
  bool IsSpent() const {
    const MutexLock lock(mutex_);
    return (queries_ == 0 ? left_ : since_ + left_ - env_.Now()) < kLeast;
  }

  // The load has its whole time again. No query may be under way.
  void Renew() {
    const MutexLock lock(mutex_);
    left_ = total_;
  }

 private:
  static constexpr Duration kLeast{10};

  MonotonicTime Begin() {
    const MutexLock lock(mutex_);
    if (queries_++ == 0) since_ = env_.Now();
    return since_ + left_;
  }

  void End() {
    const MutexLock lock(mutex_);
    if (--queries_ == 0) left_ -= env_.Now() - since_;
  }

  Env& env_;
  const MonotonicTime::duration total_;
  mutable Mutex mutex_;
  MonotonicTime::duration left_ ABSL_GUARDED_BY(mutex_);  // when `since_` was
  MonotonicTime since_ ABSL_GUARDED_BY(mutex_);           // the first of the queries began
  int queries_ ABSL_GUARDED_BY(mutex_) = 0;
};

using UpstreamBudgetPtr = std::shared_ptr<UpstreamBudget>;

// How much effort to spend on a result that is not in this host's caches.
enum class Effort {
  kBuild,
  kWait,  // takes what the upstream has, and waits for a node that builds it
  kTake,  // takes what the upstream has now
};

// Asks in the caller's thread, and writes in threads of its own. A failure is never an error of a load: it is in the
// log and the counters. Thread-safe.
class UpstreamCache {
 public:
  // The wanted result: that of `key`, which `toolchain` would make, too.
  struct Wanted {
    Digest key;
    toolchain::ToolchainPtr toolchain;
    uint64_t room = UINT64_MAX;  // how many bytes it may have
    CancellationPtr cancellation = nullptr;
    Effort effort = Effort::kTake;
    UpstreamBudgetPtr budget = nullptr;  // of the load; null: this query has one of its own
  };

  // How much may wait to be written. Results beyond that are lost to others.
  static constexpr uint64_t kMostWaitingBytes = 256 << 20;
  // A load asks once before it builds, and then each of its steps.
  static constexpr uint64_t kQuestionsAtOnce = 8;
  // How often to try to write a result, with longer and longer pauses.
  static constexpr int kMostTries = 6;
  // How long the waiting results may be written at the end, if the upstream answers.
  static constexpr Duration kLastWrites{5'000};

  // All must outlive it.
  UpstreamCache(Env& env, toolchain::FileDigests& digests, remote::SharedResults& results, remote::BuildClaims& claims,
                UpstreamCacheOptions options);
  // Every Find() must have ended.
  ~UpstreamCache();

  // The budget for all queries of one load: the time limit of one call of the upstream.
  UpstreamBudgetPtr NewBudget() const { return std::make_shared<UpstreamBudget>(env_, results_.timeout()); }

  // Nothing if there is no such result, if the upstream does not answer while the budget lasts, or if the cancellation
  // (may be null) fires. Blocks. With `build_once`, Effort::kBuild and kWait wait while another node builds it, without
  // spending the budget. After kBuild, the caller must call Keep() or EndBuild().
  std::optional<remote::SharedResult> Find(Wanted wanted);

  // The build of a load has no result to keep.
  void EndBuild(const Digest& key, remote::ClaimState state);

  bool writes() const { return options_.write; }

  // Writes a result, later. `headers`: those of the toolchain that its build has read, with the content that they had.
  // Does not write a result whose headers are not certain (see DigestToolchainHeaders()), or are outside the
  // toolchain's folders.
  void Keep(const Digest& key, const std::vector<StatedHeader>& headers,
            std::vector<std::pair<std::string, exec::Content>> files);

  const std::string& address() const { return options_.address; }

  // False: Find() returns nothing at once, because the upstream is broken.
  bool IsAnswered() const { return results_.IsAnswered(); }

  void Register(MetricsRegistry& registry) const;

 private:
  // Asks until this node should build it (Effort::kBuild), or nobody does.
  std::optional<remote::SharedResult> Await(Wanted wanted);
  // Null if the cancellation fires first: then the engine is not asked.
  std::unique_ptr<exec::ByteQuota::Share> TurnToAsk(const Wanted& wanted);
  std::optional<remote::SharedResult> FindNow(const Wanted& wanted, const UpstreamBudget::Query& query);
  bool Reserve(uint64_t bytes);
  void Write(const Digest& key, const remote::SharedResult& result, uint64_t bytes);
  bool TryToWrite(const Digest& key, const remote::SharedResult& result);
  // False if the cache is stopping.
  bool PauseWrites(Duration pause);

  Env& env_;
  toolchain::FileDigests& digests_;
  remote::SharedResults& results_;
  const UpstreamCacheOptions options_;
  MetricCounter lost_;
  exec::ByteQuota questions_{kQuestionsAtOnce};  // not bytes

  Cancellation stopped_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t waiting_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t waiting_ ABSL_GUARDED_BY(mutex_) = 0;

  std::optional<BuildTurns> turns_;
  // Each needs those above it until its last task has ended.
  WorkQueue claims_;  // in order
  WorkQueue writes_;
};

}  // namespace kernix::build
