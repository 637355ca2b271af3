// SPDX-License-Identifier: Apache-2.0
//
// Commands that run before it is known whether they are needed: while the toolchain is being identified, kernixd cannot
// look a load up, but it can compile it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/cancellation.h"
#include "common/base/digest.h"
#include "common/base/metrics.h"
#include "common/base/mutex.h"
#include "common/base/user_id.h"
#include "daemon/builder/toolchain_headers.h"
#include "daemon/exec/executor.h"

namespace kernix::build {

// Thread-safe.
class EarlyRuns {
 public:
  // Must outlive the object.
  explicit EarlyRuns(exec::Executor& executor) : executor_(executor) {}
  EarlyRuns(const EarlyRuns&) = delete;
  EarlyRuns& operator=(const EarlyRuns&) = delete;

  class Run;

  // Keeps early runs for whoever takes them. When it is destroyed, what nobody has taken is cancelled.
  class Tickets {
   public:
    explicit Tickets(EarlyRuns& runs) : runs_(runs) {}
    ~Tickets();
    Tickets(const Tickets&) = delete;
    Tickets& operator=(const Tickets&) = delete;

    // Starts to run `action`, whose salt may still be missing.
    void Begin(const exec::Action& action, UserId user, const BuildStart& start);

    bool empty() const { return begun_.empty(); }

   private:
    EarlyRuns& runs_;
    std::vector<std::shared_ptr<Run>> begun_;
  };

  // When an early run of that action by that user began, if there is one. Salts do not count.
  std::optional<BuildStart> StartOf(const exec::Action& action, UserId user);

  // As Executor::Submit(), but takes an early run of the same action by the same user, if there is one. Its output
  // comes at its end.
  void Submit(const exec::Action& action, UserId user, exec::ActionObserver* observer, CancellationPtr cancellation,
              exec::ActionDone done);

  // The registry must not be read after the object is destroyed.
  void Register(MetricsRegistry& registry) const;

 private:
  using Key = std::pair<UserId, Digest>;  // the digest of the action without its salt
  static Key KeyOf(exec::Action action, UserId user);

  std::shared_ptr<Run> Take(const exec::Action& action, UserId user);

  exec::Executor& executor_;
  MetricCounter taken_;
  MetricCounter dropped_;
  Mutex mutex_;
  std::map<Key, std::shared_ptr<Run>> waiting_ ABSL_GUARDED_BY(mutex_);  // for who takes them
};

}  // namespace kernix::build
