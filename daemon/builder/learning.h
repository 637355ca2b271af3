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
  // Ends when it is destroyed. The object waits for that.
  class Turn {
   public:
    explicit Turn(Learning& learning) : learning_(learning) {}
    ~Turn() { learning_.End(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Learning& learning_;
  };

  // Something to learn.
  class Lesson {
   public:
    virtual ~Lesson() = default;
    virtual void Start() = 0;
  };

  // Ends what is being learned, and waits for that.
  ~Learning();

  // Null while something else is being learned. A lesson must destroy its turn last.
  std::unique_ptr<Turn> Begin();

  // Whether to try: not again what failed for a lasting reason.
  bool MayLearn(const Digest& key);

  // `effect`: what loads do without, for the log.
  void NoteFailure(const Digest& key, const absl::Status& status, std::string_view effect);

  // Fires when lessons must end.
  const CancellationPtr& stop() const { return stop_; }

 private:
  void End();

  const CancellationPtr stop_ = std::make_shared<Cancellation>();
  Mutex mutex_;
  CondVar idle_;
  bool is_learning_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_set<Digest> cannot_learn_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::build
