// SPDX-License-Identifier: Apache-2.0
//
// One build that any number of loads wait for.
//
//   waiting --> fetching --> building --> done
//      ^            |
//      +------------+   the asker who fetched headers failed or left: another one fetches
//
// Askers wait in their own threads and pick up there what the build reported, so that a slow one holds up nobody. When
// the last asker has left, the flight lingers for a while, then it is abandoned: its build is cancelled, and nobody can
// join it any more.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "common/base/cancellation.h"
#include "common/base/mutex.h"
#include "daemon/builder/load_observer.h"
#include "daemon/builder/plan_runner.h"

namespace kernix::build {

// Thread-safe.
class Flight : public PlanObserver {
 public:
  using Result = absl::StatusOr<v1::LoadResult>;
  // Starts the build with the fetched and the known contents. Called once, from the thread of an asker, who then waits
  // on.
  using StartBuild = std::function<void(HeaderContents)>;

  // `headers`: what has to be fetched before the build can start. `known`: contents that are there already.
  Flight(std::vector<Digest> headers, std::chrono::milliseconds linger, HeaderContents known = {});

  // Counts one more asker, who must call Await(). False when the flight is done or abandoned.
  bool Join();

  // Waits for the result, or until `cancellation` (may be null) fires; then CANCELLED. `start` is called here when it
  // falls to this asker.
  Result Await(LoadObserver& observer, bool verbose, const CancellationPtr& cancellation, const StartBuild& start);

  // How many steps the build has. Before its first step runs.
  void SetStepsTotal(int steps);

  // Ends the flight. Call once, after StartBuild was called.
  void Complete(Result result);

  // True when nobody can join any more.
  bool closed() const;

  // True when all askers have left.
  bool empty() const;

  // What ends the build; fires when the flight is abandoned.
  const CancellationPtr& build_cancellation() const { return build_cancellation_; }

  void OnQueued(const std::string& step, int actions_ahead) override;
  void OnStarted(const exec::Action& action) override;
  void OnOutput(std::string_view text) override;
  void OnStepDone(int steps_done) override;

 private:
  enum class State { kWaiting, kFetching, kBuilding, kDone };

  // How far one asker has come in what the build reported.
  struct Asker {
    LoadObserver& observer;
    const bool verbose;
    size_t outputs_seen = 0;
    uint64_t progress_seen = 0;
    bool cancelled = false;
  };

  bool HasNews(const Asker& asker) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TellNews(Asker& asker);
  Result TheResult() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Result WaitForResult(Asker& asker, const StartBuild& start);
  absl::Status FetchAndStart(Asker& asker, const StartBuild& start);
  absl::StatusOr<HeaderContents> Fetch(Asker& asker);
  void Leave();
  bool StaysEmpty() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddOutput(v1::Output output) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Called while the load's Cancellation is locked: so that one must not be asked under our lock.
  void OnCancelled(Asker& asker);

  const std::vector<Digest> headers_;
  const std::chrono::milliseconds linger_;
  const HeaderContents known_;
  const CancellationPtr build_cancellation_ = std::make_shared<Cancellation>();

  mutable Mutex mutex_;
  CondVar changed_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kWaiting;
  bool abandoned_ ABSL_GUARDED_BY(mutex_) = false;
  int askers_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t joins_ ABSL_GUARDED_BY(mutex_) = 0;
  v1::Progress progress_ ABSL_GUARDED_BY(mutex_);
  uint64_t progress_version_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<v1::Output> outputs_ ABSL_GUARDED_BY(mutex_);
  size_t output_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // What came of it. Not one absl::Status for all: each asker gets one of its own, since TSan does not see the
  // reference counts inside a distribution's Abseil.
  v1::LoadResult result_ ABSL_GUARDED_BY(mutex_);
  std::optional<v1::ErrorDetail> error_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::build
