// SPDX-License-Identifier: Apache-2.0
//
// Keeps callers from waiting, one after the other, for what does not come: an engine that does not answer, and workers
// that take no action.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "common/base/metrics.h"
#include "common/base/mutex.h"
#include "common/os/env.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::remote {

struct EngineHealth {
  // BROKEN: the last calls failed, and so do all calls, until the engine answers a single one again.
  v1::UpstreamStatus::Health health = v1::UpstreamStatus::HEALTH_UNSPECIFIED;
  int64_t since_unix_ms = 0;  // since when it answers or is broken
  std::string last_error;     // empty: none yet
};

// Opens after kFailuresToOpen failures in a row, with one warning in the log. While it is open, it refuses all calls,
// except for a single one after each pause; the pause grows to kLongestPause. The first call that the engine answers
// closes it, with one line in the log.
//
// Some calls belong to a query, which has one deadline. An engine that answers the first of them, and the next ones too
// late, helps nobody: kFailuresToOpen queries that end by their deadline, with none between them that finds something,
// open the breaker as well. After the answer to a probe, a single one does, and the pause grows. Thread-safe.
class CircuitBreaker {
 public:
  static constexpr int kFailuresToOpen = 3;
  static constexpr Duration kFirstPause = std::chrono::seconds(5);
  static constexpr Duration kLongestPause = std::chrono::minutes(5);

  // A right to call the engine once, to be given back by one of the functions below.
  struct Permit {
    bool is_probe = false;
  };

  // `env` (the clocks) must outlive it. `address`: for the log.
  CircuitBreaker(Env& env, std::string address) : env_(env), address_(std::move(address)) {}

  // Nothing: the breaker is open.
  std::optional<Permit> Ask();

  void Answered(Permit permit);
  // Returns whether the breaker has opened just now.
  bool Failed(Permit permit, const absl::Status& error);
  // A query has ended by its deadline, or has found something in time.
  void QueryWasLate(const absl::Status& error);
  void QueryFound();
  // The caller gave up, which says nothing of the engine.
  void Abandoned(Permit permit);

  EngineHealth state() const;

  const MetricCounter& openings() const { return openings_; }

 private:
  void Open(int failures) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Enter(v1::UpstreamStatus::Health health) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Env& env_;
  const std::string address_;
  MetricCounter openings_;
  mutable Mutex mutex_;
  EngineHealth state_ ABSL_GUARDED_BY(mutex_);
  int failures_ ABSL_GUARDED_BY(mutex_) = 0;      // in a row
  int late_queries_ ABSL_GUARDED_BY(mutex_) = 0;  // since one found something
  bool probing_ ABSL_GUARDED_BY(mutex_) = false;
  Duration pause_ ABSL_GUARDED_BY(mutex_) = kFirstPause;
  MonotonicTime next_probe_ ABSL_GUARDED_BY(mutex_);
};

// Begins when no worker has taken an action within the queue limit, and ends when a worker has taken one. Meanwhile a
// single action each kProbeInterval finds out, and the others run elsewhere. Thread-safe.
class WorkerPause {
 public:
  static constexpr Duration kProbeInterval = std::chrono::minutes(1);

  enum class Answer { kSend, kProbe, kHold };

  // `env` (the clock) must outlive it.
  explicit WorkerPause(Env& env) : env_(env) {}

  // For an action that can run elsewhere. kProbe: send it, to find out.
  Answer Ask();

  // `why`: for people.
  void NotTaken(std::string why);
  void Taken();

  // Why it is on; nothing: it is not.
  std::optional<std::string> why() const;

 private:
  Env& env_;
  mutable Mutex mutex_;
  std::optional<std::string> why_ ABSL_GUARDED_BY(mutex_);
  MonotonicTime next_probe_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::remote
