// SPDX-License-Identifier: Apache-2.0
//
// Stand-ins for CUDA's runtime header (slim_phases.h): which one serves a unit, and what kernixd learns to know that.
//
// In a new store none serves: kernixd must know the names that a stand-in lacks (language/read/runtime_names.h), and
// learns them in the background when a second kernel with the same flags could use it. Until then, Guess() finds none,
// and a load only notes at its end that it has asked (Teach()).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "common/base/digest.h"
#include "common/base/identity.h"
#include "common/base/lru.h"
#include "common/base/metrics.h"
#include "common/os/env.h"
#include "daemon/builder/learning.h"
#include "daemon/builder/step_cache.h"
#include "daemon/language/read/runtime_names.h"
#include "daemon/plan/nvcc_phases.h"
#include "daemon/plan/shortcuts.h"
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

using KnownRuntimePtr = std::shared_ptr<const KnownRuntime>;

// That of one compile.
struct StandInChoice {
  KnownRuntimePtr known;  // null: all passes read the whole header
  language::RuntimeParts parts;
  bool has_std = false;                            // see RuntimeChoice; set by StandIns::Serves()
  std::optional<language::RuntimeParts> to_learn;  // a stand-in about which something is not known
};

// What was learned is kept in the step cache: a lesson is valid while its headers have the same content. Thread-safe.
class StandIns {
 public:
  // All must outlive the object.
  StandIns(Env& env, StepCache& cache, Learning& learning, const Shortcuts& disabled = {})
      : env_(env), cache_(cache), learning_(learning), is_disabled_(disabled.contains(Shortcut::kStandIns)) {}

  // Guesses which parts of the runtime header the unit of these phases needs. No stand-in, if none may serve.
  StandInChoice Guess(const Phases& phases, const toolchain::ToolchainPtr& toolchain);

  // Whether the guess was right. `slim`: the phases with that stand-in; `preprocessed`: the outputs of their passes. If
  // not, the whole header serves: no other stand-in is tried.
  bool Serves(StandInChoice& guess, const Phases& slim, const PlanOutputs& preprocessed,
              const toolchain::Toolchain& toolchain);

  // Counts a compile with the whole header for a reason that is not known here.
  void CountWhole(std::string_view reason) { compiles_[reason].Add(); }

  // The knowledge about the stand-in of `parts` for these phases, for which MayTakeStandIn() must be true; never null.
  // No passes: none.
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

  void Register(MetricsRegistry& registry) const { compiles_.Register(registry); }

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
  const bool is_disabled_;
  CounterFamily compiles_{
      "kernix_cuda_runtime_headers_total",
      "Compiles in nvcc's phases: with the parts of cuda_runtime.h that the kernel needs, or with all of it, and why.",
      "how",
      {"parts", "whole_not_possible", "whole_not_known_yet", "whole_by_names", "whole_after_preprocessing",
       "whole_forced", "whole_after_error"}};

  // By the digest of the lessons' texts: reading them takes longer than all of kernixd's other work for a compile. Each
  // takes some megabytes.
  SharedLru<Digest, KnownRuntimePtr> read_{8};
};

// Whether the rest of the runtime header changes no error of what a phase says that has read the stand-in, if there is
// one.
bool IsSameWithWholeHeader(const StandInChoice& stand_in, std::string_view words);

}  // namespace kernix::build
