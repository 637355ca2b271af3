// SPDX-License-Identifier: Apache-2.0
//
// What kernixd learns about CUDA's runtime header: the names that a stand-in lacks (language/read/runtime_names.h).
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/base/digest.h"
#include "common/base/identity.h"
#include "common/base/lru.h"
#include "common/os/env.h"
#include "daemon/builder/learning.h"
#include "daemon/builder/step_cache.h"
#include "daemon/language/read/runtime_names.h"
#include "daemon/plan/nvcc_phases.h"
#include "daemon/plan/slim_phases.h"
#include "daemon/toolchain/toolchain.h"

namespace kernix::build {

// About the stand-in of some parts.
struct KnownRuntime {
  std::set<size_t> passes;  // of a compile; each can read the stand-in or the whole header
  language::RuntimeNames names;
  // As tools name them. The choice depends on all `files`, also on those that the stand-in leaves out.
  std::set<std::string> slim_files;
  std::set<std::string> files;
};

using KnownRuntimePtr = std::shared_ptr<const KnownRuntime>;  // never null

// Kept in the step cache: a lesson is valid while its headers have the same content. Thread-safe.
class RuntimeKnowledge {
 public:
  // All must outlive the object.
  RuntimeKnowledge(Env& env, StepCache& cache, Learning& learning) : env_(env), cache_(cache), learning_(learning) {}

  // The knowledge about the stand-in of `parts` for these phases, for which MayTakeStandIn() must be true. No passes:
  // none.
  KnownRuntimePtr Find(const Phases& phases, language::RuntimeParts parts, const toolchain::Toolchain& toolchain);

  // A load's question without an answer yet.
  struct Question {
    Phases phases;
    language::RuntimeParts parts;
    toolchain::ToolchainPtr toolchain;
    UserId user;  // whose turn pays for the answer
  };

  // Learns the answer, which takes about a second of processor time, at the second question.
  void Teach(Question question);

 private:
  // Learns about one stand-in, and then about the stand-in for the question's unit.
  void Learn(Question question);
  // False: something cannot be learned.
  bool LearnPasses(const Question& question);
  absl::StatusOr<exec::ActionResult> Ask(const RuntimeProbes& probes, const RuntimeLesson& lesson,
                                         const Question& question);

  // The knowledge of these lessons, by pass. Leaves out invalid ones.
  KnownRuntimePtr Read(const std::map<size_t, exec::ActionResult>& kept, const RuntimeLesson& form);

  Env& env_;
  StepCache& cache_;
  Learning& learning_;

  // By the digest of the lessons' texts: reading them takes longer than all of kernixd's other work for a compile. Each
  // takes some megabytes.
  SharedLru<Digest, KnownRuntimePtr> read_{8};
};

}  // namespace kernix::build
