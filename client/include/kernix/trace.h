// SPDX-License-Identifier: Apache-2.0
//
// Where the time of a build went: Client::Trace().
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kernix {

// A step of a build, or work of kernixd's own.
struct TracedStep {
  enum class How {
    kRun = 1,   // a command ran
    kReused,    // the result was an earlier build's
    kDaemon,    // kernixd's own work: no command
    kUpstream,  // the result was another node's
    kRemote,    // a command ran on a worker of the upstream
  };
  std::string name;  // "cicc compute_90"; with separate units, "cicc compute_90 kernel.cu"
  How how = How::kRun;
  std::chrono::microseconds begin{0};   // since the build began: when its inputs were there
  std::chrono::microseconds waited{0};  // from then on, until its command started
  std::chrono::microseconds took{0};    // from then on
  uint64_t peak_memory_bytes = 0;       // resident, of the command's largest process; 0: not known
};

struct BuildTrace {
  int64_t began_unix_ms = 0;           // when kernixd had the request
  std::chrono::microseconds total{0};  // until the artifact was on the disk
  std::vector<TracedStep> steps;       // by `begin`
  uint32_t left_out = 0;               // how many short steps are missing, because there were too many to keep
};

// "run", "reused", "joined", "upstream", "remote" or "kernixd".
std::string_view HowName(TracedStep::How how);

// For chrome://tracing and Perfetto: one JSON object in the Trace Event Format, on one line. Each step has its own row,
// with an event "queue" for its wait; all of kernixd's own work has one row. Times count from the build's beginning.
// `title` names the build.
std::string ChromeTrace(const BuildTrace& trace, std::string_view title);

// For a terminal: a line for each step, with a bar on one time axis, then what the signs mean and the sums. Plain
// ASCII, except for names. The lines of steps have at most `width` characters, if that is 60 or more.
std::string DrawTrace(const BuildTrace& trace, size_t width = 80);

}  // namespace kernix
