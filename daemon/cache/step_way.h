// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kernix::cache {

// How a step came to its result: the numbers of v1::TracedStep::How.
enum class StepWay {
  kRun = 1,       // a command ran
  kReused = 2,    // the result was an earlier build's
  kJoined = 3,    // the result was that of another build at the same time
  kDaemon = 4,    // the daemon's own work: no command
  kUpstream = 5,  // the result was another node's
  kRemote = 6,    // a command ran on a builder
};

}  // namespace kernix::cache
