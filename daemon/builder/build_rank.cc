// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/build_rank.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "daemon/plan/plan.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::build {
namespace {

// How many builds count.
constexpr size_t kMostBuilds = 16;

// The most that recent builds of one name have needed.
struct Experience {
  std::chrono::microseconds work{0};
  std::shared_ptr<const MemoryByName> memory;
};

// The position of a build among the user's others. The rest of an earlier one goes first: it ends sooner, and holds
// what its steps have made for less long. But what takes longest must not begin last: a build whose predecessor worked
// for a minute is ranked as if it had begun a minute earlier.
uint64_t RankOf(MonotonicTime start, std::chrono::microseconds work_before) {
  const auto since_boot = std::chrono::duration_cast<std::chrono::microseconds>(start.time_since_epoch());
  return static_cast<uint64_t>((since_boot - std::min(since_boot, work_before)).count());
}

// Batches count as begun a day later.
constexpr std::chrono::microseconds kBatchDelay = std::chrono::hours(24);

// Nobody waits for one load of a batch. Its host compiles wait until the device code of all loads is under way, so that
// the longest chain of steps, which nobody knows yet, begins sooner.
constexpr std::chrono::microseconds kHostDelay = std::chrono::minutes(1);

Experience ExperienceWith(cache::Cache& cache, const cache::Tag& tag) {
  Experience experience;
  MemoryByName memory;
  for (const cache::BuiltFrom& built : cache.Recent(tag, kMostBuilds).value_or(std::vector<cache::BuiltFrom>())) {
    const auto trace = cache.TraceOf(built.key);
    if (!trace.ok() || !trace->has_value()) continue;
    uint64_t work_us = 0;
    for (const v1::TracedStep& step : (*trace)->step()) {
      if (step.how() == v1::TracedStep::RUN || step.how() == v1::TracedStep::REMOTE) work_us += step.took_us();
      if (step.peak_memory_bytes() == 0) continue;
      uint64_t& most = memory[step.name()];
      most = std::max(most, step.peak_memory_bytes());
    }
    experience.work = std::max(experience.work, std::chrono::microseconds(work_us));
  }
  experience.memory = std::make_shared<const MemoryByName>(std::move(memory));
  return experience;
}

}  // namespace

void RankSteps(cache::Cache& cache, PlannedLoad& load) {
  const Experience experience = ExperienceWith(cache, load.tag);
  const uint64_t rank = RankOf(load.started.monotonic, experience.work);
  for (Step& step : load.plan.steps) {
    step.memory_before = experience.memory;
    UseExperience(step);
    step.action.rank = rank;
    step.action.batch_rank = rank + kBatchDelay.count();
    if (step.nvcc) step.nvcc->host_batch_rank = step.action.batch_rank + kHostDelay.count();
  }
}

}  // namespace kernix::build
