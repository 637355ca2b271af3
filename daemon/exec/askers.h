// SPDX-License-Identifier: Apache-2.0
//
// Who waits for a build.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/identity.h"
#include "common/base/mutex.h"

namespace kernix::exec {

// One load that waits.
struct Asker {
  UserId user{};
  bool is_of_batch = false;
  size_t max_parallel = 0;  // most steps at a time that this asker wants; 0: any number

  auto operator<=>(const Asker&) const = default;
};

// Among a user's actions that wait.
struct QueuePosition {
  UserId user{};
  uint64_t rank = 0;  // lower ones first

  auto operator<=>(const QueuePosition&) const = default;
};

// All actions of a build share the object: each has the best position of its askers. Askers come and go while the
// actions wait: Executor::AskersChanged() updates the queue. Thread-safe.
class Askers {
 public:
  Askers() = default;
  explicit Askers(const Asker& only) { Join(only); }

  void Join(const Asker& asker);
  // After the last asker has left, the rest of the build keeps that asker's position until another one joins.
  void Leave(const Asker& asker);

  // Whether all have left.
  bool empty() const;

  // One position for each user. `rank`, `batch_rank`: see Action.
  std::vector<QueuePosition> Positions(uint64_t rank, uint64_t batch_rank) const;

  // One of the users.
  UserId First() const;

  // Most steps at a time that one of the askers wants. 0: any number.
  size_t max_parallel() const;

 private:
  mutable Mutex mutex_;
  std::multiset<Asker> askers_ ABSL_GUARDED_BY(mutex_);  // or the last one, who has left
  bool empty_ ABSL_GUARDED_BY(mutex_) = true;
};

using AskersPtr = std::shared_ptr<Askers>;

// For what one user alone waits for.
inline AskersPtr OneAsker(UserId user) { return std::make_shared<Askers>(Asker{user}); }

}  // namespace kernix::exec
