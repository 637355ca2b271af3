// SPDX-License-Identifier: Apache-2.0
//
// A zygote: a process that has entered an enclosure, and from which the jobs in it are forked. So the enclosure is made
// once.
#pragma once

#include <cstddef>
#include <list>

#include "common/os/spawn_message.h"
#include "common/os/unique_fd.h"
#include "daemon/spawn/restrictions.h"

namespace kernix::spawn {

// Not thread-safe.
class Zygotes {
 public:
  // `proc`: a descriptor of /proc.
  explicit Zygotes(int proc) : proc_(proc) {}

  // Hands a job to the zygote of its enclosure, and starts that if need be. If there is none to be had, the job ends
  // with the reason.
  void Run(const Enclosure& enclosure, const UniqueFd& connection, const UniqueFd& output);

 private:
  struct Zygote {
    Enclosure enclosure;
    UniqueFd channel;  // when it closes, the zygote ends after its jobs
  };

  // The least recently used ones end.
  static constexpr size_t kMost = 16;

  std::list<Zygote>::iterator Find(const Enclosure& enclosure);
  UniqueFd Start(const Enclosure& enclosure);

  const int proc_;
  std::list<Zygote> zygotes_;  // most recently used first
};

}  // namespace kernix::spawn
