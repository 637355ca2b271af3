// SPDX-License-Identifier: Apache-2.0
//
// Records where the time of a build goes: the times of its steps, and the daemon's own work before and after them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"
#include "common/os/env.h"
#include "daemon/cache/entry.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::build {

// The times of a step that has ended.
struct StepTimes {
  std::string name;
  v1::TracedStep::How way = v1::TracedStep::RUN;
  MonotonicTime ready;    // its inputs were there
  MonotonicTime started;  // its command, with staged inputs; if none ran: when the search for another result began
  MonotonicTime ended;
  uint64_t peak_memory_bytes = 0;  // see exec::ActionResult; 0 also if no command ran
};

// The bounds of a trace. Of more steps, those that took longest are kept; of a longer name, the beginning.
inline constexpr size_t kMostTracedSteps = 1000;
inline constexpr size_t kLongestTracedName = 120;  // bytes

// Thread-safe. The build begins when the recorder is made.
class TraceRecorder {
 public:
  explicit TraceRecorder(Env& env);

  void Add(const StepTimes& times);

  // The daemon's own work: everything since the last call of Lap() or Skip(), or since the beginning.
  void Lap(const std::string& name);
  // The time since then is not the daemon's own work.
  void Skip();

  // The trace until now.
  v1::BuildTrace Trace() const;

 private:
  v1::TracedStep StepFrom(const StepTimes& times) const;

  Env& env_;
  const MonotonicTime began_;
  const int64_t began_unix_ms_;
  mutable Mutex mutex_;
  MonotonicTime lap_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::TracedStep> steps_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::build
