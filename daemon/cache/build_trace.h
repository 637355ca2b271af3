// SPDX-License-Identifier: Apache-2.0
//
// Where the time of a build went, as a store keeps it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kernix::cache {

// How a step came to its result. The index stores these numbers.
enum class StepWay {
  kRun = 1,       // a command ran
  kReused = 2,    // the result was an earlier build's
  kJoined = 3,    // the result was that of another build at the same time
  kDaemon = 4,    // the daemon's own work: no command
  kUpstream = 5,  // the result was another node's
  kRemote = 6,    // a command ran on a builder
};

// One step. Times are in microseconds.
struct TracedStep {
  std::string name;  // "cicc compute_90"
  StepWay way = StepWay::kRun;
  uint64_t begin_us = 0;           // since the build began: when its inputs were there
  uint64_t waited_us = 0;          // from then on, until its command started
  uint64_t took_us = 0;            // from then on
  uint64_t peak_memory_bytes = 0;  // resident, of the command's largest process; 0: not known
  bool operator==(const TracedStep&) const = default;
};

struct BuildTrace {
  int64_t began_unix_ms = 0;
  uint64_t total_us = 0;
  std::vector<TracedStep> steps;  // by `begin_us`
  uint32_t left_out = 0;          // how many short steps are missing, if there were too many to keep
  bool operator==(const BuildTrace&) const = default;
};

}  // namespace kernix::cache
