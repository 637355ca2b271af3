// SPDX-License-Identifier: Apache-2.0
//
// What kernixd knows of CUDA's runtime header, and learns: which names a stand-in lacks
// (language/read/runtime_names.h).
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "common/base/cancellation.h"
#include "common/base/mutex.h"
#include "common/base/user_id.h"
#include "common/os/env.h"
#include "daemon/builder/step_cache.h"
#include "daemon/language/read/runtime_names.h"
#include "daemon/plan/nvcc_phases.h"
#include "daemon/plan/slim_phases.h"
#include "daemon/toolchain/toolchain.h"

namespace kernix::build {

class StepRunner;

// About the stand-in of some parts.
struct KnownRuntime {
  std::set<size_t> passes;  // of a compile; each can read the stand-in or the whole header
  language::RuntimeNames names;
  // As tools name them. The choice rests on all `files`, also on those that the stand-in leaves out.
  std::set<std::string> slim_files;
  std::set<std::string> files;
};

// Kept in the step cache: a lesson counts as long as the headers that it was made from have the same content.
// Thread-safe.
class RuntimeKnowledge {
 public:
  // All must outlive the object.
  RuntimeKnowledge(Env& env, StepRunner& runner, StepCache& cache) : env_(env), runner_(runner), cache_(cache) {}

  // Ends what is being learned, and waits for that.
  ~RuntimeKnowledge();

  // What is known about the stand-in of `parts` for these phases, which must be ones that MayTakeStandIn(). No passes:
  // nothing.
  KnownRuntime Find(const Phases& phases, language::RuntimeParts parts, const toolchain::Toolchain& toolchain);

  // What a load has asked for in vain.
  struct Question {
    Phases phases;
    language::RuntimeParts parts;
    toolchain::ToolchainPtr toolchain;
    UserId user;  // whose turn pays for the answer
  };

  class Lesson;

  // Prepares to learn the answer. Null while another one is being learned. The object waits for the end of the lesson,
  // so the caller must start it: it may be all that keeps the object.
  std::shared_ptr<Lesson> Prepare(Question question);

  // Learns in the background, which takes about a second of processor time.
  static void Start(const std::shared_ptr<Lesson>& lesson);

 private:
  bool Begin();
  void End();
  bool MayLearn(const Digest& lesson);
  void NoteFailure(const Digest& lesson, const absl::Status& status);

  Env& env_;
  StepRunner& runner_;
  StepCache& cache_;
  const CancellationPtr stop_ = std::make_shared<Cancellation>();

  Mutex mutex_;
  CondVar idle_;
  bool is_learning_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_set<Digest> cannot_learn_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::build
