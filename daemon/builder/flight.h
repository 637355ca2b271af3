// SPDX-License-Identifier: Apache-2.0
//
// Builds that any number of loads wait for.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "common/base/cancellation.h"
#include "common/base/digest.h"
#include "common/base/mutex.h"
#include "daemon/builder/toolchain_headers.h"
#include "daemon/builder/trace_recorder.h"
#include "daemon/builder/upstream_cache.h"
#include "daemon/cache/entry.h"
#include "daemon/exec/action.h"
#include "daemon/exec/askers.h"
#include "daemon/plan/plan.h"
#include "daemon/request/request.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::build {

// The asker of a load, as the builder sees it. Called only from the thread that calls Builder::Load() with it.
class LoadObserver {
 public:
  virtual ~LoadObserver() = default;

  // Fetches exactly these contents from the client; each has its digest. Blocks; must return when the client leaves.
  // Called at most once, before any progress.
  virtual absl::StatusOr<HeaderContents> FetchHeaders(const std::vector<Digest>& digests) = 0;

  virtual void OnProgress(const v1::Progress& /*progress*/) {}

  // For verbose loads only.
  virtual void OnOutput(const v1::Output& /*output*/) {}
};

// One build that any number of loads wait for.
//
//   waiting --> fetching --> building --> done
//      ^            |
//      +------------+   the asker who fetched headers failed or left: another one fetches
//
// Askers wait in their own threads and collect there what the build has reported, so a slow asker delays nobody. When
// the last asker has left, the flight lingers for a while. Then it is abandoned: its build is cancelled, and nobody can
// join it any more. Thread-safe.
class Flight : public exec::ActionObserver {
 public:
  using Result = absl::StatusOr<v1::LoadResult>;
  // Gets the contents of these headers for an asker, in its thread.
  using FetchHeaders = absl::FunctionRef<absl::StatusOr<HeaderContents>(const std::vector<Digest>& headers)>;
  // Starts the build with the fetched contents. Called once, in the thread of an asker, who then
  // continues to wait. Must not throw.
  using StartBuild = absl::FunctionRef<void(HeaderContents)>;

  // `headers`: contents to fetch before the build can start.
  Flight(std::vector<Digest> headers, std::chrono::milliseconds linger);

  // One more asker, who must call Await(). Returns false if the flight is done or abandoned, or, with `only_running`,
  // if its build has not started: such an asker never starts it.
  bool Join(const exec::Asker& asker, bool only_running = false);

  // Waits for the result, and leaves. `asker` has joined. Returns CANCELLED if `cancellation` (may be null) fires
  // first. Calls `fetch`, if there are headers, and `start` if this asker is the one to start the build.
  Result Await(const exec::Asker& asker, LoadObserver& observer, bool verbose, const CancellationPtr& cancellation,
               FetchHeaders fetch, StartBuild start);

  // Sets the number of steps. Must be called before the first step runs.
  void SetStepsTotal(int steps);

  // Ends the flight. Must be called once, after StartBuild was called.
  void Complete(Result result);

  // True if nobody can join any more.
  bool closed() const;

  // Whether the build needs headers of an asker's.
  bool fetches() const { return !headers_.empty(); }

  // Those who wait.
  const exec::AskersPtr& askers() const { return askers_; }

  // Cancels the build; fires when the flight is abandoned.
  const CancellationPtr& build_cancellation() const { return build_cancellation_; }

  void OnQueued(const exec::Action& action, int actions_ahead) override;
  void OnStarted(const exec::Action& action) override;
  void OnOutput(std::string_view text) override;
  void OnStepDone(int steps_done) override;

 private:
  enum class State { kWaiting, kFetching, kBuilding, kDone };

  // How much of the build's reports one asker has received.
  struct Reader {
    LoadObserver& observer;
    const bool verbose;
    size_t outputs_seen = 0;
    uint64_t progress_seen = 0;
    bool cancelled = false;
  };

  bool HasNews(const Reader& reader) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TellNews(Reader& reader);
  Result TheResult() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Result WaitForResult(Reader& reader, FetchHeaders fetch, StartBuild start);
  absl::Status FetchAndStart(FetchHeaders fetch, StartBuild start);
  void Leave(const exec::Asker& asker);
  bool StaysEmpty() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddOutput(v1::Output output) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::vector<Digest> headers_;
  const std::chrono::milliseconds linger_;
  const exec::AskersPtr askers_ = std::make_shared<exec::Askers>();
  const CancellationPtr build_cancellation_ = std::make_shared<Cancellation>();

  mutable Mutex mutex_;
  CondVar changed_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kWaiting;
  bool abandoned_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t joins_ ABSL_GUARDED_BY(mutex_) = 0;
  v1::Progress progress_ ABSL_GUARDED_BY(mutex_);
  uint64_t progress_version_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<v1::Output> outputs_ ABSL_GUARDED_BY(mutex_);
  size_t output_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // The outcome. Not a shared absl::Status: each asker gets its own, because TSan does not see the reference counts
  // inside a distribution's Abseil.
  v1::LoadResult result_ ABSL_GUARDED_BY(mutex_);
  std::optional<v1::ErrorDetail> error_ ABSL_GUARDED_BY(mutex_);
};

// A load that has been checked and planned.
struct PlannedLoad {
  BuildRequest request;
  Plan plan;
  Digest key;
  std::vector<v1::LoadWarning> warnings;
  std::optional<Digest> request_digest;  // of what a lookup would ask; nothing if no lookup can know the answer
  cache::Tag tag;
  bool force = false;
  bool verbose = false;
  exec::Asker asker;    // of the tag's owner
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
  FlightPtr Join(const Key& key, const exec::Asker& asker, bool only_running = false)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  FlightPtr Make(const PlannedLoad& load);

  const std::chrono::milliseconds linger_;

  Mutex mutex_;
  CondVar idle_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  int work_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<Key, FlightPtr> flights_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::build
