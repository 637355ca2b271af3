// SPDX-License-Identifier: Apache-2.0
//
// The flights of one builder.
#pragma once

#include <chrono>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "common/base/digest.h"
#include "common/base/mutex.h"
#include "common/os/env.h"
#include "daemon/builder/flight.h"
#include "daemon/builder/look_budget.h"
#include "daemon/builder/planned_load.h"

namespace kernix::build {

using FlightPtr = std::shared_ptr<Flight>;

// Loads of one key join the same flight, unless their efforts differ: a load that may build would wait in vain for one
// that may not. A load that must not build joins only a running build. A load with local compilers never joins a build
// that needs workers. Thread-safe.
class Flights {
 public:
  // `env` must outlive this object. `linger`: see Flight.
  Flights(Env& env, std::chrono::milliseconds linger) : env_(env), linger_(linger) {}

  // What StopAndWait() waits for: a load, a lookup or a build. A build ends in another thread than it begins.
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

  // Cancels what runs, and waits until all work has ended. CANCELLED for whoever asks for a flight from now on.
  void StopAndWait();

  // Joins the flight of `load`, making one if needed. `mine`: this call made it. Null: a load flies that does more than
  // this lookup.
  absl::StatusOr<FlightPtr> JoinOrMake(const PlannedLoad& load, bool& mine);

  // Joins the lookups of a key that look in the upstream now. Null if there are none.
  FlightPtr JoinLookups(const Digest& key);

  // Nobody joins it any more.
  void Forget(const FlightPtr& flight);

  // Remembers for a moment that a lookup has asked the upstream for this key in vain, and what that has left of its
  // budget: the load that follows it need not ask again.
  void NoteVainLook(const Digest& key, LookBudgetPtr looks);
  // Null if no lookup has. Forgets it, too.
  LookBudgetPtr TakeVainLook(const Digest& key);

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
  struct VainLook {
    MonotonicTime end;
    LookBudgetPtr looks;
  };

  // Null if there is none that takes askers.
  FlightPtr Join(const Key& key, bool only_running = false) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  FlightPtr Make(const PlannedLoad& load);

  Env& env_;
  const std::chrono::milliseconds linger_;

  Mutex mutex_;
  CondVar idle_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  int work_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<Key, FlightPtr> flights_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<Digest, VainLook> vain_looks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::build
