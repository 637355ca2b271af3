// SPDX-License-Identifier: Apache-2.0
//
// What kernixd learns from one load for later ones, in the background.
#pragma once

#include <memory>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "common/base/cancellation.h"
#include "common/base/digest.h"
#include "common/base/mutex.h"

namespace kernix::build {

// One lesson at a time, so that learning takes no more than one processor. Thread-safe.
class Learning {
 public:
  // Something to learn. Whoever has one must start it: the object waits for its end.
  class Lesson {
   public:
    virtual ~Lesson() = default;
    virtual void Start() = 0;
  };

  // Ends what is being learned, and waits for that.
  ~Learning();

  // False while something else is being learned. Otherwise the caller must call End() once.
  bool Begin();
  void End();

  // Whether to try: not again what failed for a lasting reason.
  bool MayLearn(const Digest& key);

  // `effect`: what loads do without, for the log.
  void NoteFailure(const Digest& key, const absl::Status& status, std::string_view effect);

  // Fires when lessons must end.
  const CancellationPtr& stop() const { return stop_; }

 private:
  const CancellationPtr stop_ = std::make_shared<Cancellation>();
  Mutex mutex_;
  CondVar idle_;
  bool is_learning_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_set<Digest> cannot_learn_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::build
