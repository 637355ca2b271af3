// SPDX-License-Identifier: Apache-2.0
//
// Loads that have been planned, and the flights of one builder.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "common/base/digest.h"
#include "common/base/mutex.h"
#include "daemon/builder/flight.h"
#include "daemon/builder/toolchain_headers.h"
#include "daemon/builder/trace_recorder.h"
#include "daemon/builder/upstream_cache.h"
#include "daemon/cache/entry.h"
#include "daemon/plan/plan.h"
#include "daemon/request/request.h"

namespace kernix::build {

// A load that has been checked and planned.
struct PlannedLoad {
  BuildRequest request;
  Plan plan;
  Digest key;
  std::vector<v1::LoadWarning> warnings;
  std::optional<Digest> request_digest;  // of what a lookup would ask; nothing if no lookup can know the answer
  cache::Tag tag;
  bool force = false;
  size_t max_parallel = 0;
  bool batch = false;
  bool frozen = false;  // its program expects no build any more
  Effort effort = Effort::kBuild;
  std::shared_ptr<TraceRecorder> trace;  // null for a lookup

  // Set when the build starts.
  BuildStart started;
  HeaderContents headers;
  UpstreamBudgetPtr budget;  // null: the upstream is not asked

  bool needs_workers() const { return request.toolchain->described != nullptr; }
};

using FlightPtr = std::shared_ptr<Flight>;

// Loads of one key join the same flight, unless their efforts differ: a load that may build must not wait for one that
// may not. A load that must not build joins only a running build. A load with local compilers never joins a build that
// needs workers. Thread-safe.
class Flights {
 public:
  // `linger`: see Flight.
  explicit Flights(std::chrono::milliseconds linger) : linger_(linger) {}

  // StopAndWait() waits for these: loads, lookups and builds. A build ends in another thread than it begins.
  void BeginWork();
  void EndWork();
  class Work {
   public:
    explicit Work(Flights& flights) : flights_(flights) { flights_.BeginWork(); }
    ~Work() { flights_.EndWork(); }
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;

   private:
    Flights& flights_;
  };

  // Cancels all work, and waits until it has ended. From now on, JoinOrMake() returns CANCELLED.
  void StopAndWait();

  // Joins the flight of `load`, making one if needed. `mine`: this call made it.
  absl::StatusOr<FlightPtr> JoinOrMake(const PlannedLoad& load, bool& mine);

  // Nobody joins it any more.
  void Forget(const FlightPtr& flight);

 private:
  struct Key {
    Digest load;
    Effort effort = Effort::kBuild;
    bool needs_workers = false;  // of a build

    bool operator==(const Key&) const = default;
    template <typename H>
    friend H AbslHashValue(H hash, const Key& key) {
      return H::combine(std::move(hash), key.load, key.effort, key.needs_workers);
    }
  };

  // Null if there is none that takes askers.
  FlightPtr Join(const Key& key, bool only_running = false) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  FlightPtr Make(const PlannedLoad& load);

  const std::chrono::milliseconds linger_;

  Mutex mutex_;
  CondVar idle_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  int work_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<Key, FlightPtr> flights_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::build
